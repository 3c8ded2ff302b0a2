use super::*;

type Seen = Vec<(String, String)>;

fn drain(decoder: &mut Decoder, seen: &mut Seen) -> Result<(), TooLong> {
    while let Some(event) = decoder.next()? {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        seen.push((text(event.name), text(event.data)));
    }
    Ok(())
}

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let (mut decoder, mut seen) = (Decoder::default(), Seen::new());
    for piece in pieces {
        decoder.push(piece);
        drain(&mut decoder, &mut seen).expect("short events");
    }
    decoder.finish();
    drain(&mut decoder, &mut seen).expect("short events");
    seen
}

fn data(events: &[&str]) -> Seen {
    events
        .iter()
        .map(|data| (String::new(), (*data).to_owned()))
        .collect()
}

#[test]
fn every_way_to_write_an_event_is_read() {
    for (bytes, want) in [
        ("data: a\n\ndata: b\n\n", data(&["a", "b"])),
        ("data:a\n\n", data(&["a"])),
        ("data:  a\n\n", data(&[" a"])),
        ("data: a\r\n\r\ndata: b\r\n\r\n", data(&["a", "b"])),
        ("data: a\r\rdata: b\r\r", data(&["a", "b"])),
        ("data: a\r\n\n", data(&["a"])),
        ("data: a\ndata: b\ndata\n\n", data(&["a\nb\n"])),
        (": ping\n\n\n\ndata: a\n\n: pong\n", data(&["a"])),
        ("\u{feff}data: a\n\n", data(&["a"])),
        ("id: 1\nretry: 5\ndatax: no\ndata: a\n\n", data(&["a"])),
        ("event: ping\n\ndata: a\n\n", data(&["a"])),
        ("data: a\n\ndata: b", data(&["a", "b"])),
        ("data: a\n\ndata: b\n", data(&["a", "b"])),
        ("data: \u{1f980}\n\n", data(&["\u{1f980}"])),
        (
            "event: error\ndata: a\n\n",
            vec![("error".into(), "a".into())],
        ),
        ("data\n\n", data(&[""])),
        ("", data(&[])),
    ] {
        assert_eq!(decode([bytes.as_bytes()]), want, "{bytes:?}");
        assert_eq!(
            decode(bytes.as_bytes().chunks(1)),
            want,
            "one by one: {bytes:?}"
        );
    }
}

#[test]
fn event_ends_at_its_empty_line() {
    let mut decoder = Decoder::default();
    decoder.push(b"data: a\r\n\r");
    let data = |event: Result<Option<Event>, TooLong>| event.map(|event| event.map(|e| e.data));
    assert_eq!(data(decoder.next()), Ok(Some(b"a".to_vec())));
    decoder.push(b"\ndata: b\n\n");
    assert_eq!(data(decoder.next()), Ok(Some(b"b".to_vec())));
    assert_eq!(data(decoder.next()), Ok(None));
}

#[test]
fn endless_event_is_refused() {
    let long = vec![b'x'; MAX_EVENT_BYTES + 1];
    let mut decoder = Decoder::default();
    decoder.push(b"data: ");
    decoder.push(&long);
    assert_eq!(decoder.next(), Err(TooLong));

    let mut decoder = Decoder::default();
    let line = [b"data: ", &long[..1 << 20], b"\n"].concat();
    let outcomes: Vec<_> = (0..10)
        .map(|_| {
            decoder.push(&line);
            decoder.next().is_err()
        })
        .collect();
    assert_eq!(
        outcomes.iter().position(|refused| *refused),
        Some(3),
        "four lines and their feeds"
    );
}
