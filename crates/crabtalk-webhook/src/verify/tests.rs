use super::*;
use crabtalk_component::axum::http::{HeaderName, HeaderValue};

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = HeaderValue::from_str(value).expect("a value");
        (HeaderName::from_static(name), value)
    });
    pairs.collect()
}

const AT: u64 = 1_614_265_330;

/// The example of the standard's own libraries.
fn standard(changed: &[(&'static str, &str)], body: &str, now: u64) -> Option<Signed> {
    let secret = from_base64("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let mut given = headers(&[
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        (
            "webhook-signature",
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ]);
    given.extend(headers(changed));
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    verify(&key, Scheme::Standard, &given, body.as_bytes(), now)
}

#[test]
fn a_standard_request_is_known_by_its_signature_and_its_time() {
    let body = "{\"test\": 2432232314}";
    let signed = standard(&[], body, AT).expect("signed");
    assert_eq!(signed.until, AT + TOLERANCE_SECS);
    let again = standard(&[], body, AT + 9).expect("signed");
    assert_eq!(signed, again, "what is signed tells requests apart");
    let two = "v1,AAAA v2,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert!(standard(&[("webhook-signature", two)], body, AT).is_some());
    for (now, taken) in [
        (AT - TOLERANCE_SECS, true),
        (AT + TOLERANCE_SECS, true),
        (AT - TOLERANCE_SECS - 1, false),
        (AT + TOLERANCE_SECS + 1, false),
    ] {
        assert_eq!(standard(&[], body, now).is_some(), taken, "{now}");
    }
    for (name, value) in [
        ("webhook-id", "msg_other"),
        ("webhook-timestamp", "1614265331"),
        ("webhook-timestamp", "+1614265330"),
        ("webhook-timestamp", "99999999999999999999"),
        ("webhook-timestamp", "now"),
        ("webhook-signature", ""),
        ("webhook-signature", "v1,"),
        ("webhook-signature", "v1,!!!"),
        (
            "webhook-signature",
            "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (
            "webhook-signature",
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ] {
        assert!(
            standard(&[(name, value)], body, AT).is_none(),
            "{name}: {value}"
        );
    }
    assert!(standard(&[], "{\"test\": 2432232315}", AT).is_none());
}

#[test]
fn a_request_of_the_other_kind_is_known_by_its_body() {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"It's a Secret to Everybody");
    let of = |signature: &str, delivery: &str, body: &str| {
        let given = headers(&[
            ("x-hub-signature-256", signature),
            ("x-github-delivery", delivery),
        ]);
        verify(&key, Scheme::Github, &given, body.as_bytes(), AT)
    };
    // The example in GitHub's documentation.
    let fine = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let signed = of(fine, "a", "Hello, World!").expect("signed");
    let again = of(fine, "b", "Hello, World!").expect("signed");
    assert_eq!(
        signed.id, again.id,
        "a name that is not signed makes no other"
    );
    let loud = fine.to_uppercase().replace("SHA256", "sha256");
    let loud = of(&loud, "a", "Hello, World!").expect("signed");
    assert_eq!(loud.id, signed.id, "nor do capitals");
    for signature in [
        "",
        "sha256=",
        "sha256=0",
        "sha256=757107ea",
        "sha256=zz",
        "sha256=日本",
        "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        "sha256=+57107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    ] {
        assert!(of(signature, "a", "Hello, World!").is_none(), "{signature}");
    }
    assert!(of(fine, "a", "Hello, World?").is_none());
}
