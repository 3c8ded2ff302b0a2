use super::*;

fn markdown(html: &str) -> String {
    let base = Url::parse("https://example.org/docs/page?x=1").expect("an address");
    to_markdown(html, &base).1
}

#[test]
fn page_elements_become_markdown() {
    for (html, want) in [
        ("<p>One\n  two</p><p>three</p>", "One two\n\nthree"),
        ("a<br>b", "a\nb"),
        ("<h2>Head</h2>text", "## Head\n\ntext"),
        (
            "<ul><li>a<li>b<ol start=3><li>c</ol></ul>d",
            "- a\n- b\n  3. c\n\nd",
        ),
        (
            "x <b>bold</b> and <i>it</i><b></b>.",
            "x **bold** and *it*.",
        ),
        ("<a href='../y'>there</a>", "[there](https://example.org/y)"),
        (
            "<a href='#top'>up</a><a href='javascript:x()'>no</a>",
            "upno",
        ),
        ("<a href='/e'></a>e", "e"),
        ("use <code>a  b</code> now", "use `a b` now"),
        (
            "<pre>fn x() {\n    y\n}</pre>z",
            "```\nfn x() {\n    y\n}\n```\n\nz",
        ),
        (
            "<blockquote><p>q</p><p>r</p></blockquote>s",
            "> q\n\n> r\n\ns",
        ),
        (
            "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
            "a | b\n1 | 2",
        ),
        ("<img src=x alt='A crab'>", "[image: A crab]"),
        ("&lt;b&gt; &amp; &#x65E5;&nbsp;x", "<b> & 日\u{a0}x"),
        ("a<script>var x = '<p>no</p>';</script>b", "ab"),
        ("a<style>p{}</style><!-- c --><p hidden>h</p>b", "ab"),
        (
            "<nav><a href=/>Home</a></nav>text<footer>(c)</footer>",
            "text",
        ),
        (
            "<nav>menu that never ends<p>text",
            "menu that never ends\n\ntext",
        ),
        ("", ""),
        ("plain", "plain"),
    ] {
        assert_eq!(markdown(html), want, "{html}");
    }
}

#[test]
fn the_main_part_is_taken_if_it_is_one() {
    let long = "word ".repeat(100);
    let html = format!(
        "<head><title> The\n title </title></head><div>around</div><main><h1>Head</h1>{long}</main><div>below</div>"
    );
    let base = Url::parse("https://example.org/").expect("an address");
    let (title, text) = to_markdown(&html, &base);
    assert_eq!(title.as_deref(), Some("The title"));
    assert!(text.starts_with("# Head\n\nword word"), "{text}");
    assert!(
        !text.contains("around") && !text.contains("below"),
        "{text}"
    );
    let short = markdown("<div>around</div><main>three words only</main>");
    assert_eq!(short, "around\n\nthree words only");
}

#[test]
fn hostile_pages_cost_what_their_length_costs() {
    let deep = 20_000;
    for part in [
        "<div>",
        "<ul><li>",
        "<blockquote>",
        "<pre>",
        "<b>",
        "<main>",
        "<a href=x>",
        "<nav>",
        "<table><tr><td>",
        "</ul>",
        "</main>",
        "</pre>",
        "&amp",
        "<svg>",
        "<!--",
        "<![CDATA[",
        "<title>",
    ] {
        let text = markdown(&format!("{}end", part.repeat(deep)));
        assert!(text.len() < 40 * deep, "{part}: {}", text.len());
    }
    let one = format!("<p {}>x</p>", "a=b ".repeat(deep));
    assert_eq!(markdown(&one), "x");
}
