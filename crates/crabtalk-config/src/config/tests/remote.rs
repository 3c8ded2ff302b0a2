//! Listeners and tokens.

use super::*;

fn hash(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

#[test]
fn listeners_beyond_loopback_need_encryption() {
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
        "1:1: tcp: listen: 0.0.0.0:6688 is reached from other machines and needs encryption: set tls = true, \
         or cert and key, or name the encrypting proxy in front (proxy = \"ADDRESS\")",
    );
    fails(
        "[tcp]\ntls = true\n",
        "1:1: tcp: listen: expected 1 to 16 addresses, as in \"127.0.0.1:6688\"",
    );
    fails(
        "[tcp]\nlisten = \"127.0.0.1\"\ntsl = true\n",
        "3:1: tcp.tsl: unknown key; did you mean tls?",
    );
    fails(
        "[tcp]\nlisten = \"example.org:1\"\n",
        "1:1: tcp: listen: \"example.org:1\" is not an address: use ADDRESS:PORT, as in 127.0.0.1:6688 or \
         [::]:6688",
    );
    fails(
        "[tcp]\nlisten = \"127.0.0.1\"\ncert = \"/c\"\n",
        "1:1: tcp: cert and key: set both (PEM) or none",
    );
}

#[test]
fn tokens_are_read_and_wrong_ones_refused() {
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
            "4:1: token.x.sender: unknown key; did you mean senders?",
        ),
        (
            token("x", "role = \"talk\"\nsenders = []\n"),
            "4:11: token.x.senders: expected 1 to 100 texts, or no such key",
        ),
        (
            token("user", "role = \"talk\"\n"),
            "1:1: token.user: an owner has this name: choose another name",
        ),
        (
            token("Cron", "role = \"talk\"\n"),
            "1:1: token.Cron: the name is reserved: choose another name",
        ),
        (
            token("x", "role = \"boss\"\n"),
            "3:8: token.x.role: expected one of talk, operate, admin, found \"boss\"",
        ),
        (
            token("x", "role = \"talk\"\nuntil = \"soon\"\n"),
            "4:9: token.x.until: expected a date, as in 2027-01-31, or an instant, as in \
             2027-01-31T12:00:00Z, found string \"soon\"",
        ),
        (
            "[token.x]\nhash = \"secret\"\nrole = \"talk\"\n".to_owned(),
            "2:8: token.x.hash: expected sha256: and 64 hexadecimal digits, as `crabtalk \
             tokens add` writes it",
        ),
        (
            token("x", "role = \"talk\"\n") + &token("y", "role = \"talk\"\n"),
            "4:1: token.y: token.x has the same hash: make each token with `crabtalk tokens add`",
        ),
    ] {
        fails(&text, want);
    }
}
