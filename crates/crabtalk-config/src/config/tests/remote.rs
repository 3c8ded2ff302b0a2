//! Listeners and tokens.

use super::*;

fn hash(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

#[test]
fn listeners_have_a_port_and_are_encrypted_beyond_loopback() {
    let tcp = |text: &str| config(&format!("[tcp]\n{text}\n")).tcp.expect("a section");
    let addresses = |text: &str| {
        let listen = tcp(text).listen;
        listen.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(config("").tcp, None);
    assert_eq!(addresses("listen = \"127.0.0.1\""), ["127.0.0.1:6688"]);
    assert_eq!(
        addresses("listen = [\"localhost:7\", \"[::1]\", \"127.0.0.1:7\"]"),
        ["127.0.0.1:7", "[::1]:6688"]
    );
    assert_eq!(tcp("listen = \"0.0.0.0\"\ntls = true").tls, TcpTls::Own);
    let proxied = tcp("listen = \"0.0.0.0:1\"\nproxy = \"10.0.0.2\"");
    assert_eq!((proxied.tls, proxied.proxy.len()), (TcpTls::Off, 1));
    fails(
        "[tcp]\nlisten = \"0.0.0.0:6688\"\n",
        "config.toml:1:1: tcp.listen: 0.0.0.0:6688 is reached from elsewhere, where nothing may go \
         unencrypted: set tls = true, or cert and key, or name the proxy in front that encrypts \
         (proxy = \"ADDRESS\")",
    );
    fails(
        "[tcp]\nport = 6688\n",
        "config.toml:1:1: tcp.listen: missing, expected where to listen, as in \"127.0.0.1:6688\"",
    );
    fails(
        "[tcp]\nlisten = \"127.0.0.1\"\ntsl = true\n",
        "config.toml:3:1: tcp.tsl: unknown key; did you mean tls?",
    );
    fails(
        "[tcp]\nlisten = \"example.org:1\"\n",
        "config.toml:1:1: tcp.listen: \"example.org:1\" is no address to listen on: expected \
         ADDRESS:PORT, as in 127.0.0.1:6688 or [::]:6688",
    );
    fails(
        "[tcp]\nlisten = \"127.0.0.1\"\ncert = \"/c\"\n",
        "config.toml:1:1: tcp.key: missing: the certificate's key, PEM",
    );
}

#[test]
fn tokens_say_what_they_reach_and_what_is_misspelt_opens_nothing() {
    let config = config(&format!(
        "[token.phone]\nhash = \"{}\"\nrole = \"talk\"\nsenders = [\"tg:*\"]\nuntil = 2027-01-31\n\
         [token.ops]\nhash = \"{}\"\nrole = \"operate\"\ncwd = \"~/work\"\n",
        hash('a'),
        hash('b')
    ));
    let [phone, ops] = &config.token[..] else {
        panic!("{:?}", config.token)
    };
    assert_eq!(
        (phone.name.as_str(), phone.role),
        ("phone", TokenRole::Talk)
    );
    assert_eq!(phone.senders.as_deref(), Some(&["tg:*".to_owned()][..]));
    assert_eq!(phone.until.unwrap().to_string(), "2027-02-01T00:00:00Z");
    assert_eq!(ops.cwd.as_deref(), Some(&[PathBuf::from("/me/work")][..]));
    assert_eq!(ops.hash.to_string(), hash('b'));
    let token =
        |name: &str, rest: &str| format!("[token.{name}]\nhash = \"{}\"\n{rest}", hash('a'));
    for (text, want) in [
        (
            token("x", "role = \"talk\"\nsender = \"a\"\n"),
            "config.toml:4:1: token.x.sender: unknown key; did you mean senders?",
        ),
        (
            token("x", "role = \"talk\"\nsenders = []\n"),
            "config.toml:1:1: token.x.senders: is empty: name something, or leave it out",
        ),
        (
            token("user", "role = \"talk\"\n"),
            "config.toml:1:8: token.user: an owner has that name: a token speaks under its own",
        ),
        (
            token("Cron", "role = \"talk\"\n"),
            "config.toml:1:8: token.Cron: the daemon's own senders begin so: choose another name",
        ),
        (
            token("x", "role = \"boss\"\n"),
            "config.toml:3:8: token.x.role: expected one of talk, operate, admin, found \"boss\"",
        ),
        (
            token("x", "role = \"talk\"\nuntil = \"soon\"\n"),
            "config.toml:4:9: token.x.until: expected a date, as in 2027-01-31, or an instant, as in \
             2027-01-31T12:00:00Z",
        ),
        (
            "[token.x]\nhash = \"secret\"\nrole = \"talk\"\n".to_owned(),
            "config.toml:1:1: token.x.hash: expected sha256: and 64 hexadecimal digits, as `crabtalk \
             tokens add` writes it",
        ),
        (
            token("x", "role = \"talk\"\n") + &token("y", "role = \"talk\"\n"),
            "config.toml:4:8: token.y: another token has the same hash: make each with `crabtalk \
             tokens add`",
        ),
    ] {
        fails(&text, want);
    }
}
