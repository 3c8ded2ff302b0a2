//! The programs of which harmless options are known, and those of which none
//! are.

use super::Known::{self, Never};
use super::spec::Spec;
use super::{checks, git, scripts, sed, subcommands};

/// Shells, wrappers, editors, debuggers, and builtins that change what later
/// commands do: whatever they are given may run.
const NEVER: &str = "
    sh bash dash zsh ksh mksh ash rbash csh tcsh fish pwsh busybox toybox nu elvish xonsh
    eval source . trap alias unalias export declare typeset local readonly unset set shopt read
    mapfile readarray let getopts bind complete compgen compopt enable hash fc history jobs wait
    ulimit umask coproc command builtin exec fg bg disown suspend times logout caller
    env sudo doas nohup nice ionice timeout time stdbuf setsid chroot unshare nsenter strace ltrace
    xargs parallel watch ssh mosh flock script su runuser setpriv chrt taskset systemd-run at batch
    crontab tmux screen unbuffer firejail proot fakeroot linux32 linux64 setarch prlimit numactl
    run-parts entr rlwrap dbus-run-session xvfb-run pkexec run0 start-stop-daemon bwrap daemonize
    torsocks proxychains proxychains4 chpst gosu catchsegv valgrind perf uftrace capsh setfacl
    multitime ts expect ld.so ld-linux.so ld-linux-x86-64.so cpulimit softlimit
    envdir envuidgid setlock choom cgexec hyperfine direnv nix-shell nix npx pnpx bunx
    uvx pipx uv poetry tox nox conda mamba pyenv rbenv nvm asdf mise corepack volta distrobox
    vi vim nvim view vimdiff rvim rview gvim ex ed red emacs emacsclient nano pico micro joe jed
    mcedit kak hx gdb lldb cgdb rr pdb dlv jdb ftp sftp lftp telnet socat ncat nc netcat mail mailx
    mutt elinks lynx w3m links irb ghci jshell scala sbcl clisp racket psql mysql mariadb redis-cli
    mongo mongosh tcpdump tshark wireshark nmap openssl gpg gpg2 ssh-keygen ssh-add ssh-agent
    ssh-keyscan scp sshfs rclone smbclient busctl dbus-send gdbus mount umount insmod modprobe
    ansible ansible-playbook terraform vagrant packer puppet chef salt helm snap flatpak
    dpkg rpm dnf yum apt apt-get aptitude pacman apk zypper brew port emerge
    zip 7z 7za 7zr rar cpio pax ar ld as gold lld dialog whiptail rofi dmenu fzf peco gum xdg-open
    xterm wall write tclsh wish guile octave R Rscript julia osascript ocaml ghc runghc swift
    tex latex pdftex pdflatex xetex xelatex luatex lualatex latexmk bibtex gs ghostscript convert
    magick mogrify ffmpeg ffprobe ffplay m4 bc dc cscope ctags jrunscript
    logrotate logsave updatedb yelp facter zypper zathura gimp restic borg rsnapshot dvips
    aria2c wget2 axel yt-dlp youtube-dl cupsfilter dmsetup genisoimage mkisofs tee dd install patch
    pidstat sar sysctl systemd-resolve tasksh task timedatectl sg newgrp login chsh chfn passwd
    useradd usermod visudo vipw watchexec inotifywait nodemon pm2 supervisorctl forever
    chronic ifne pee mispipe sponge vidir vipe zrun ts lckdo x86_64 i386 i486 i586 i686 uname26
    eatmydata faketime fakechroot trickle schedtool cset dtach abduco reptyr tsocks sshpass autossh
    rsh rlogin pssh dbclient kitty alacritty foot konsole gnome-terminal urxvt st rxvt terminator
    wezterm ccache distcc sccache icecc bear scan-build intercept-build rustup cargo-watch bacon
    bmake pmake remake ninja-build samu hg jj bzr brz fossil darcs p4 cvs hub tig gitk lazygit gitui
    pandoc asciidoctor sphinx-build gnuplot exiftool identify compare composite montage import
    dot neato clang-tidy pydoc ptx objcopy strip ranlib dlltool windres elfedit gprof xsltproc
    coredumpctl machinectl loginctl hostnamectl launchctl defaults open xcrun plutil
    erl elixir iex sbt bazel scons ant mocha vitest webpack vite rollup esbuild babel
    ss lsof dig aws gcloud az unrar zipnote zipsplit sdiff info dpkg-deb apt-cache apt-config
    mlr duckdb cloc ipython bpython jupyter groovy kotlin clojure lein bb crystal nim zig rdmd tcc
    cling lerna oc nerdctl crictl lxc lxc-attach incus virsh wine guix consul nomad
";

/// Programs with a list of options, by name.
const SPECS: [(&str, Spec); 54] = [
    ("sort", Spec::new("bcCdfgghiMnRrsuVzm", "kt",
        "ignore-leading-blanks check dictionary-order ignore-case general-numeric-sort \
         human-numeric-sort ignore-nonprinting month-sort numeric-sort random-sort reverse stable \
         unique version-sort zero-terminated key= field-separator= merge help version")),
    ("uniq", Spec::new("cdDiuz", "fsw",
        "count repeated all-repeated skip-fields= ignore-case skip-chars= unique zero-terminated \
         check-chars= group help version").operands(1)),
    ("shuf", Spec::new("erz", "ni",
        "echo head-count= repeat zero-terminated input-range= help version")),
    ("split", Spec::new("dxe", "abln", "help version").operands(1)),
    ("csplit", Spec::new("ks", "n", "help version").operands(0)),
    ("grep", GREP), ("egrep", GREP), ("fgrep", GREP), ("zgrep", GREP),
    ("rg", Spec::new("acFHhIilnNopPqsSUuvwx0123456789", "ABCEefgjMmrtT",
        "after-context= before-context= context= color= column no-column count count-matches \
         debug encoding= files files-with-matches files-without-match fixed-strings glob= \
         iglob= heading no-heading hidden ignore-case invert-match json line-number \
         no-line-number line-regexp max-columns= max-count= max-depth= max-filesize= multiline \
         multiline-dotall no-config no-ignore no-ignore-vcs no-messages null only-matching \
         pcre2 pretty quiet regexp= replace= smart-case case-sensitive sort= sortr= stats text \
         trim type= type-not= type-list unrestricted vimgrep word-regexp with-filename \
         no-filename version help threads=")),
    ("ag", Spec::new("acFGHiLlnQqRrsSUuvwz0123456789", "ABCGgm",
        "after before context= count color nocolor column depth= files-with-matches \
         files-without-matches fixed-strings ignore= ignore-case invert-match literal \
         line-numbers max-count= nofilename numbers nonumbers smart-case stats word-regexp \
         hidden heading noheading nobreak version help")),
    ("ack", Spec::new("cfgHhiLlnoQqrRsvwx1", "ABCm", "count ignore-case version help")),
    ("fd", FD), ("fdfind", FD),
    ("bat", BAT), ("batcat", BAT),
    ("man", Spec::new("afkKwW", "sSL",
        "whatis apropos where path where-cat all sections= locale= names-only regex wildcard \
         no-hyphenation no-justification help version usage")),
    ("tree", Spec::new("adfilxgpsuDFNQqrthvUcnCSAJX", "LPI",
        "noreport filelimit= dirsfirst filesfirst du si prune matchdirs ignore-case gitignore \
         sort= inodes device help version")),
    ("xxd", Spec::new("abCeEdipru", "cglso", "").operands(1)),
    ("base64", Spec::new("di", "w", "decode ignore-garbage wrap= help version")),
    ("file", Spec::new("bikLhNnrsvz0", "FP",
        "brief mime mime-type mime-encoding extension no-dereference dereference keep-going \
         print0 raw separator= no-pad help version")),
    ("hostname", Spec::new("aAdfiIsy", "", "fqdn short ip-address all-ip-addresses domain long")
        .operands(0)),
    ("unzip", Spec::new("lZtvqopPanjC", "x", "")),
    ("gzip", Spec::new("cdfklnNqrtv123456789", "", "stdout decompress keep list test quiet verbose \
         fast best help version recursive force")),
    ("wget", Spec::new("qSv46", "tT",
        "quiet no-verbose spider server-response timeout= tries= no-check-certificate \
         show-progress max-redirect= version help")),
    ("ctest", Spec::new("VNQFj0123456789", "REL",
        "verbose extra-verbose output-on-failure parallel= tests-regex= exclude-regex= \
         label-regex= rerun-failed stop-on-failure show-only progress timeout= version help")),
    ("ninja", Spec::new("vn0123456789", "jkl", "verbose quiet version help")),
    ("cmake", Spec::new("Nv", "jG",
        "build= target= parallel= config= clean-first verbose version help fresh")),
    ("pytest", PYTEST), ("py.test", PYTEST),
    ("journalctl", Spec::new("rfeaxqkN0123456789", "nupSUgto",
        "lines= unit= user-unit= priority= since= until= grep= output= reverse follow no-pager \
         pager-end all catalog quiet dmesg boot list-boots disk-usage utc user system \
         no-hostname output-fields= version help").attached("b")),
    ("ps", Spec::new("AaCdefFglHjLMmNOopqsTtUuVvwXxyZrc0123456789", "",
        "forest sort= format= pid= ppid= user= group= no-headers headers cols= width= version help")),
    ("gcov", Spec::new("abcfk", "", "version help")),
    ("nm", Spec::new("aABCDgnopPrStuv", "", "demangle dynamic extern-only undefined-only \
        defined-only print-size size-sort line-numbers numeric-sort no-sort reverse-sort help version")),
    ("size", Spec::new("ABGdtox", "", "format= totals common help version")),
    ("objdump", Spec::new("afphxdDSsrRtTgGlFCwz", "jMmb", "disassemble disassemble-all headers \
        section-headers all-headers syms dynamic-syms reloc dynamic-reloc full-contents source \
        line-numbers demangle wide section= disassemble-zeroes no-show-raw-insn help version")),
    ("diff3", Spec::new("AeEimxX3aT", "L", "show-all ed merge text label= initial-tab help version")),
    ("iconv", Spec::new("lcs", "ft", "from-code= to-code= list silent help version")),
    ("zstd", Spec::new("dkqvcl0123456789", "T", "stdout decompress keep quiet test list help version")),
    ("xmllint", Spec::new("", "", "noout format valid schema= relaxng= xpath= huge nonet recover \
        encode= html xmlout pretty= version help")),
    ("clang-format", Spec::new("n", "", "dry-run Werror lines= version help")),
    ("eslint", Spec::new("hv", "", "max-warnings= ext= quiet color no-color debug help version \
        env-info report-unused-disable-directives no-error-on-unmatched-pattern")),
    ("prettier", Spec::new("cl", "", "check list-different no-color ignore-unknown no-config \
        log-level= version help")),
    ("tsc", Spec::new("pvhwb", "", "noEmit project= pretty strict skipLibCheck watch build version \
        help listFiles")),
    ("mypy", Spec::new("hvV", "mp", "strict ignore-missing-imports no-error-summary pretty \
        show-error-codes show-column-numbers explicit-package-bases namespace-packages \
        follow-imports= no-incremental python-version= platform= check-untyped-defs exclude= \
        disallow-untyped-defs warn-unused-ignores help version")),
    ("pylint", Spec::new("Evrh", "dej", "errors-only disable= enable= reports= score= jobs= help version")),
    ("flake8", Spec::new("vqh", "j", "max-line-length= select= ignore= extend-ignore= exclude= \
        count statistics show-source max-complexity= jobs= help version")),
    ("black", Spec::new("qvSCh", "lt", "check diff color no-color quiet verbose line-length= \
        target-version= skip-string-normalization fast safe include= exclude= help version")),
    ("isort", Spec::new("qvch", "l", "check check-only diff quiet verbose profile= line-length= \
        help version")),
    ("jest", Spec::new("iobhu", "tw", "watchAll ci coverage verbose silent bail runInBand \
        testNamePattern= testPathPattern= passWithNoTests onlyChanged maxWorkers= no-coverage \
        colors help version detectOpenHandles forceExit listTests updateSnapshot")),
    ("rspec", Spec::new("bh", "et", "example= tag= fail-fast color no-color order= seed= backtrace \
        dry-run only-failures next-failure help version")),
    ("rake", Spec::new("nTqsvmPtAh", "j", "tasks dry-run quiet silent trace verbose all help version")),
    ("phpunit", Spec::new("vh", "", "filter= testsuite= group= exclude-group= stop-on-failure \
        stop-on-error colors testdox verbose debug list-tests help version")),
    ("just", Spec::new("lnqvhV", "", "list dry-run show= summary evaluate quiet verbose help version")),
];

const GREP: Spec = Spec::new(
    "EFGPiyvwxcLlqsbHhnTUZzraIo0123456789",
    "efmABCdD",
    "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case \
     invert-match word-regexp line-regexp count color colour files-without-match \
     files-with-matches max-count= only-matching quiet silent no-messages byte-offset \
     with-filename no-filename label= line-number initial-tab null null-data after-context= \
     before-context= context= text binary-files= exclude= exclude-dir= exclude-from= include= \
     recursive line-buffered regexp= file= help version",
);

const FD: Spec = Spec::new(
    "HIusigap0Fq1",
    "dtEecjS",
    "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex \
     fixed-strings absolute-path full-path max-depth= min-depth= exact-depth= \
     type= extension= exclude= size= changed-within= changed-before= max-results= color= \
     threads= print0 quiet prune strip-cwd-prefix version help",
);

const BAT: Spec = Spec::new(
    "pAnfSud",
    "lHrm",
    "plain show-all number style= color= line-range= language= highlight-line= wrap= tabs= \
     theme= decorations= file-name= diff force-colorization version help",
);

pub(super) const TAR: Spec = Spec::new(
    "cxtrzjJavkpmOSUWld",
    "f",
    "create extract get list gzip bzip2 xz zstd auto-compress verbose keep-old-files \
     to-stdout file= exclude= strip-components= wildcards no-wildcards exclude-vcs \
     exclude-vcs-ignores same-permissions no-same-owner no-same-permissions numeric-owner \
     sort= mtime= owner= group= totals diff compare help version",
);

const PYTEST: Spec = Spec::new(
    "qvsxlh",
    "kmn",
    "quiet verbose exitfirst maxfail= lf last-failed ff failed-first nf new-first sw stepwise \
     durations= durations-min= tb= showlocals collect-only co no-header no-summary color= \
     disable-warnings strict-markers strict-config deselect= ignore= markers fixtures version \
     help capture= numprocesses= dist= timeout= cov-branch runxfail",
)
.attached("r");

/// Programs with a check of their own.
const CHECKS: [(&str, super::Check); 70] = [
    ("git", git::check),
    ("curl", checks::curl),
    ("jq", checks::jq),
    ("yq", checks::yq),
    ("ruff", subcommands::ruff),
    ("bundle", subcommands::bundle),
    ("bundler", subcommands::bundle),
    ("composer", subcommands::composer),
    ("mix", subcommands::mix),
    ("dotnet", subcommands::dotnet),
    ("find", checks::find),
    ("gfind", checks::find),
    ("sed", sed::check),
    ("gsed", sed::check),
    ("awk", checks::awk),
    ("gawk", checks::awk),
    ("mawk", checks::awk),
    ("nawk", checks::awk),
    ("make", checks::make),
    ("gmake", checks::make),
    ("rsync", checks::rsync),
    ("tar", checks::tar),
    ("bsdtar", checks::tar),
    ("gtar", checks::tar),
    ("less", checks::less),
    ("more", checks::more),
    ("date", checks::date),
    ("mvn", checks::mvn),
    ("ip", checks::ip),
    ("test", checks::test),
    ("[", checks::test),
    ("printf", checks::printf),
    ("cd", checks::cd),
    ("pushd", checks::cd),
    ("popd", checks::cd),
    ("sqlite", checks::sqlite),
    ("gcc", checks::compiler),
    ("g++", checks::compiler),
    ("cc", checks::compiler),
    ("c++", checks::compiler),
    ("clang", checks::compiler),
    ("clang++", checks::compiler),
    ("rustc", checks::rustc),
    ("java", checks::java),
    ("javac", checks::javac),
    ("python", scripts::python),
    ("pypy", scripts::python),
    ("perl", scripts::perl),
    ("ruby", scripts::ruby),
    ("node", scripts::node),
    ("nodejs", scripts::node),
    ("deno", scripts::deno),
    ("bun", scripts::bun),
    ("php", scripts::php),
    ("lua", scripts::lua),
    ("luajit", scripts::lua),
    ("cargo", subcommands::cargo),
    ("npm", subcommands::npm),
    ("pnpm", subcommands::npm),
    ("yarn", subcommands::yarn),
    ("go", subcommands::go),
    ("pip", subcommands::pip),
    ("docker", subcommands::docker),
    ("podman", subcommands::docker),
    ("kubectl", subcommands::kubectl),
    ("gh", subcommands::gh),
    ("systemctl", subcommands::systemctl),
    ("gradle", subcommands::gradle),
    ("gradlew", subcommands::gradle),
    ("svn", subcommands::svn),
];

/// What is known of a program, by its name without a folder. A version at the
/// end of the name counts for nothing: `python3.12` is `python`.
pub(super) fn known(name: &str) -> Option<Known> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    [name, bare].into_iter().find_map(listed)
}

fn listed(name: &str) -> Option<Known> {
    if let Some((_, spec)) = SPECS.iter().find(|(listed, _)| *listed == name) {
        return Some(Known::Spec(*spec));
    }
    if let Some((_, check)) = CHECKS.iter().find(|(listed, _)| *listed == name) {
        return Some(Known::Check(*check));
    }
    let mut never = NEVER.split_ascii_whitespace();
    never.any(|listed| listed == name).then_some(Never)
}
