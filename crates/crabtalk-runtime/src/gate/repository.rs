//! Looks whether git would run something because a repository says so.
//!
//! A repository may come from anybody, and its configuration names programs:
//! filters, drivers, helpers. Hooks, the pager and the monitor are switched off
//! for the commands of narrow rules, but drivers have names of their own. So
//! only keys that are known to name no program are let pass.
//!
//! Invariant: what cannot be read surely is not let pass.

use super::disk::{Content, Disk};
use std::path::{Path, PathBuf};

/// Longest configuration; real ones have a few hundred bytes.
const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// Longest index: a repository of some hundred thousand files.
const MAX_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// Repositories within repositories that are looked at.
const MAX_REPOSITORIES: usize = 64;

/// Keys that name no program, as `section.key`; a section with a name in
/// quotes is `section.*.key`.
const HARMLESS: &str = "
    core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase
    core.precomposeunicode core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath
    core.untrackedcache core.preloadindex core.fscache core.longpaths core.hidedotfiles core.abbrev
    core.commitgraph core.multipackindex core.sparsecheckout core.sparsecheckoutcone
    core.compression core.bigfilethreshold core.packedgitlimit core.checkstat core.trustctime
    core.whitespace core.commentchar core.protecthfs core.protectntfs core.splitindex
    core.sharedrepository core.fsyncmethod core.fsync core.looseobjectcompression
    core.hookspath core.fsmonitor core.pager core.worktree safe.*
    extensions.objectformat extensions.partialclone extensions.refstorage
    extensions.worktreeconfig extensions.compatobjectformat extensions.relativeworktrees
    remote.*.url remote.*.fetch remote.*.pushurl remote.*.push remote.*.tagopt remote.*.prune
    remote.*.prunetags remote.*.mirror remote.*.promisor remote.*.partialclonefilter
    remote.*.skipdefaultupdate remote.*.skipfetchall remote.*.followremotehead
    remote.*.gh-resolved remote.pushdefault
    branch.*.remote branch.*.merge branch.*.rebase branch.*.description branch.*.pushremote
    branch.*.vscode-merge-base branch.*.gh-merge-base branch.*.github-pr-owner-number
    branch.*.base branch.autosetupmerge branch.autosetuprebase branch.sort
    user.name user.email user.signingkey user.useconfigonly author.name author.email
    committer.name committer.email init.defaultbranch
    pull.rebase pull.ff push.default push.autosetupremote push.followtags fetch.prune
    fetch.prunetags fetch.parallel fetch.writecommitgraph fetch.fsckobjects
    transfer.fsckobjects receive.fsckobjects receive.denycurrentbranch
    submodule.active submodule.*.url submodule.*.active submodule.*.branch submodule.*.ignore
    submodule.recurse submodule.fetchjobs
    color.ui color.status color.diff color.branch color.log advice.* feature.manyfiles
    feature.experimental gc.auto gc.autodetach gc.pruneexpire gc.reflogexpire gc.autopacklimit
    maintenance.auto maintenance.strategy index.version index.threads index.skiphash
    index.sparse pack.threads pack.windowmemory pack.packsizelimit pack.deltacachesize
    commit.gpgsign commit.verbose tag.gpgsign tag.sort tag.forcesignannotated merge.ff
    merge.conflictstyle merge.renamelimit merge.renames rebase.autostash rebase.autosquash
    rebase.updaterefs rerere.enabled rerere.autoupdate diff.algorithm diff.renames
    diff.renamelimit diff.colormoved diff.mnemonicprefix diff.noprefix diff.submodule
    diff.ignoresubmodules status.showuntrackedfiles status.submodulesummary status.branch
    log.date log.decorate log.follow log.showsignature log.showroot
    http.postbuffer http.lowspeedlimit http.lowspeedtime http.version http.*.extraheader
    http.extraheader lfs.repositoryformatversion lfs.*.access lfs.url
    alias.* gui.* gitweb.* column.ui checkout.defaultremote checkout.workers
    blame.ignorerevsfile versionsort.suffix stash.showpatch worktree.guessremote
    sequence.abbreviatecommands help.autocorrect i18n.commitencoding i18n.logoutputencoding
    format.pretty gitlab.* github.* hub.* svn-remote.*
";

/// What a command sends to, if it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sends {
    /// The remote that the command names.
    pub(super) to: Option<String>,
}

/// Whether git may run in this folder; the error continues "the repository".
/// What is sent has to go to remotes on other machines: what receives on this
/// one runs hooks of its own.
pub(super) fn check(disk: &dyn Disk, folder: &Path, sends: Option<&Sends>) -> Result<(), String> {
    let mut seen = Vec::new();
    let mut waiting = around(disk, folder)?;
    while let Some((top, git)) = waiting.pop() {
        if seen.contains(&git) {
            continue;
        }
        if seen.len() == MAX_REPOSITORIES {
            return Err("holds too many repositories".into());
        }
        let common = common_folder(disk, &git)?;
        let files = [
            common.join("config"),
            git.join("config.worktree"),
            common.join("config.worktree"),
        ];
        let mut names = Names::default();
        for file in files {
            configuration(disk, &file, sends.is_some(), &mut names)?;
        }
        // Repositories within others say where their files are.
        let is_top = |worktree: &String| disk.resolve(&git.join(worktree)) == disk.resolve(&top);
        if !names.worktrees.iter().all(is_top) {
            return Err("keeps its files elsewhere".into());
        }
        if let Some(sends) = sends {
            names.named.extend(sends.to.clone());
            let old = ["remotes", "branches"];
            let old = old.iter().any(|old| has_names(disk, &common.join(old)));
            if old || !names.named.iter().all(|name| names.remotes.contains(name)) {
                return Err("sends to more than its own remotes".into());
            }
        }
        for path in submodules(disk, &git)? {
            let inner = top.join(path);
            waiting.extend(at(disk, &inner)?.map(|git| (inner, git)));
        }
        seen.push(git);
    }
    Ok(())
}

fn has_names(disk: &dyn Disk, folder: &Path) -> bool {
    /// One would do.
    const MOST: usize = 64;
    disk.names(folder, MOST)
        .is_none_or(|names| !names.is_empty())
}

/// The repositories that git may take a folder to be in: the folder of their
/// files, and the one of git's own.
fn around(disk: &dyn Disk, folder: &Path) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let start = disk.resolve(folder).ok_or("cannot be found")?;
    let mut found = Vec::new();
    for top in start.ancestors() {
        // Git's own folder is one without files, or pretends to be.
        if top.file_name().is_some_and(|name| name == ".git") {
            return Err("is entered from within".into());
        }
        if let Some(git) = at(disk, top)? {
            let is_whole = is_repository(disk, &git);
            found.push((top.to_path_buf(), git));
            if is_whole {
                break;
            }
        }
    }
    Ok(found)
}

/// Whether git surely takes a folder for its own; else it looks further up.
fn is_repository(disk: &dyn Disk, git: &Path) -> bool {
    let head = match disk.read(&git.join("HEAD"), MAX_CONFIG_BYTES) {
        Content::File(text) => text,
        Content::Absent | Content::Folder | Content::Unclear => return false,
    };
    let plain = head.starts_with(b"ref: refs/") || head.iter().take(40).all(u8::is_ascii_hexdigit);
    let folder = |name: &str| disk.read(&git.join(name), 0) == Content::Folder;
    plain && head.len() > 11 && folder("objects") && folder("refs")
}

/// Git's own folder for the files in this one.
fn at(disk: &dyn Disk, top: &Path) -> Result<Option<PathBuf>, String> {
    let git = top.join(".git");
    match disk.read(&git, MAX_CONFIG_BYTES) {
        Content::Absent => Ok(None),
        Content::Folder => Ok(Some(git)),
        Content::File(text) => {
            let text = String::from_utf8(text).map_err(|_| "has an odd `.git`")?;
            let path = text.trim_end_matches(['\n', '\r']).strip_prefix("gitdir: ");
            Ok(Some(top.join(path.ok_or("has an odd `.git`")?)))
        }
        Content::Unclear => Err("has an odd `.git`".into()),
    }
}

/// Where a work tree of several shares its configuration.
fn common_folder(disk: &dyn Disk, git: &Path) -> Result<PathBuf, String> {
    match disk.read(&git.join("commondir"), MAX_CONFIG_BYTES) {
        Content::Absent => Ok(git.to_path_buf()),
        Content::File(text) => {
            let text = String::from_utf8(text).map_err(|_| "has an odd `commondir`")?;
            Ok(git.join(text.trim_end_matches(['\n', '\r'])))
        }
        Content::Folder | Content::Unclear => Err("has an odd `commondir`".into()),
    }
}

/// Remotes that a configuration defines, and those that it names.
#[derive(Default)]
struct Names {
    remotes: Vec<String>,
    named: Vec<String>,
    /// Folders of files.
    worktrees: Vec<String>,
}

fn configuration(
    disk: &dyn Disk,
    file: &Path,
    sends: bool,
    names: &mut Names,
) -> Result<(), String> {
    match disk.read(file, MAX_CONFIG_BYTES) {
        Content::Absent => Ok(()),
        Content::File(text) => {
            let text =
                String::from_utf8(text).map_err(|_| "has a configuration that is no text")?;
            keys(&text, sends, names)
        }
        Content::Folder | Content::Unclear => Err("has a configuration that cannot be read".into()),
    }
}

/// Looks at every key of a configuration.
fn keys(text: &str, sends: bool, names: &mut Names) -> Result<(), String> {
    const ODD: &str = "has a configuration that is not plain";
    let mut section = String::new();
    let mut inner = String::new();
    for line in text.split('\n') {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.contains(|c: char| c.is_control() && c != '\t') || line.ends_with('\\') {
            return Err(ODD.into());
        }
        if let Some(head) = line.strip_prefix('[') {
            (section, inner) = head_of(head.strip_suffix(']').ok_or(ODD)?).ok_or(ODD)?;
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim_end();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if key.is_empty() || section.is_empty() || !key.chars().all(plain) {
            return Err(ODD.into());
        }
        let name = format!("{section}.{}", key.to_ascii_lowercase());
        if !is_harmless(&name) {
            return Err(format!("sets `{name}`, which may name a program"));
        }
        let is_remote = name.ends_with("url") && name.starts_with("remote.");
        if is_remote && !is_plain_address(value.trim(), sends) {
            return Err(format!("sets `{name}` to more than an address"));
        }
        match name.as_str() {
            "remote.*.url" | "remote.*.pushurl" => names.remotes.push(inner.clone()),
            "branch.*.remote" | "branch.*.pushremote" | "remote.pushdefault" => {
                names.named.push(value.trim().to_owned());
            }
            "core.worktree" => names.worktrees.push(value.trim().to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// `section` or `section.*`, in small letters, and what stands for the star.
fn head_of(head: &str) -> Option<(String, String)> {
    let (name, rest) = match head.split_once([' ', '\t']) {
        Some((name, rest)) => (name, rest.trim()),
        None => (head, ""),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if rest.is_empty() {
        return Some((name, String::new()));
    }
    let inner = rest.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains(['"', '\\', ']', '[', '#', ';']))
        .then(|| (format!("{name}.*"), inner.to_owned()))
}

fn is_harmless(name: &str) -> bool {
    let mut known = HARMLESS.split_ascii_whitespace();
    known.any(|known| {
        known == name
            || known
                .strip_suffix('*')
                .is_some_and(|all| name.strip_prefix(all).is_some_and(|rest| !rest.is_empty()))
    })
}

/// Whether an address names another machine, or at least no helper. What is
/// sent to a folder of this machine runs that folder's hooks.
fn is_plain_address(value: &str, sends: bool) -> bool {
    let value = value.trim_matches('"');
    let plain =
        !value.contains("::") && !value.starts_with('-') && !value.contains(['\\', '"', '#', ';']);
    let far = ["https://", "http://", "ssh://", "git://"]
        .iter()
        .any(|start| value.starts_with(start));
    let by_ssh = value.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty() && !host.contains('/') && !path.starts_with("//")
    });
    let to_host = far || by_ssh;
    // `ssh://-oProxyCommand=..` is an option of ssh.
    let host = value.rsplit("://").next().unwrap_or(value);
    plain && !host.starts_with('-') && !host.contains("@-") && (to_host || !sends)
}

/// Paths of repositories that the index holds as such.
fn submodules(disk: &dyn Disk, git: &Path) -> Result<Vec<PathBuf>, String> {
    match disk.read(&git.join("index"), MAX_INDEX_BYTES) {
        Content::Absent => Ok(Vec::new()),
        Content::File(bytes) => {
            links(&bytes).ok_or_else(|| "has an index that is not understood".into())
        }
        Content::Folder | Content::Unclear => Err("has an index that cannot be read".into()),
    }
}

/// Reads an index as git describes it, versions 2 and 3, and 4 with its
/// shortened paths.
fn links(bytes: &[u8]) -> Option<Vec<PathBuf>> {
    /// The mode of a repository within a repository.
    const LINK: u32 = 0o160_000;
    /// What stands before an object's name.
    const STAT_BYTES: usize = 40;
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(4)?;
    // Names of objects have 20 bytes, or 32 in the newer form; which, tells the
    // reader that reaches a known extension or the end.
    [20, 32].into_iter().find_map(|hash| {
        let mut at = 12;
        let mut found = Vec::new();
        let mut name: Vec<u8> = Vec::new();
        for _ in 0..number(8)? {
            let mode = number(at + 24)?;
            let flags_at = at + STAT_BYTES + hash;
            let flags = *bytes.get(flags_at)?;
            let extended = flags & 0x40 != 0 && version > 2;
            let begin = flags_at + if extended { 4 } else { 2 };
            let mut from = begin;
            if version == 4 {
                let strip = varint(bytes, &mut from)?;
                name.truncate(name.len().checked_sub(strip)?);
            } else {
                name.clear();
            }
            let end = from + bytes.get(from..)?.iter().position(|b| *b == 0)?;
            name.extend_from_slice(&bytes[from..end]);
            at = if version == 4 {
                end + 1
            } else {
                at + (end - at + 8) / 8 * 8
            };
            // A kind of entry that git does not write: the wrong length.
            if !matches!(mode >> 12, 0o4 | 0o10 | 0o12 | 0o16) || name.is_empty() {
                return None;
            }
            if mode & 0o170_000 == LINK {
                found.push(PathBuf::from(String::from_utf8(name.clone()).ok()?));
            }
        }
        extensions_end(bytes, at, hash).then_some(found)
    })
}

/// Whether what follows the entries is made of extensions that hide none.
fn extensions_end(bytes: &[u8], mut at: usize, hash: usize) -> bool {
    while at + hash < bytes.len() {
        let Some(head) = bytes.get(at..at + 8) else {
            return false;
        };
        // `link` means that most entries are in another file.
        if &head[..4] == b"link" || !head[..4].iter().all(u8::is_ascii_alphabetic) {
            return false;
        }
        let Ok(size) = <[u8; 4]>::try_from(&head[4..]) else {
            return false;
        };
        let size = usize::try_from(u32::from_be_bytes(size)).unwrap_or(usize::MAX);
        at = at.saturating_add(8).saturating_add(size);
    }
    at + hash == bytes.len()
}

/// git's number of variable length.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value
            .checked_mul(128)?
            .checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests;
