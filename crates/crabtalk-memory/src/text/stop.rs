//! Stop words.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words that documents and queries omit. Single letters and halves of contractions
/// remain after clitics are removed.
const STOP_WORDS: &str = "
a an the this that these those
i me my mine myself we us our ours you your yours he him his she her hers it its they them their theirs
who whom whose which what when where why how
am is are was were be been being do does did doing done have has had having
can could will would shall should may might must ca wo sha
and or but nor so if then else than as because while although though
of in on at by for with about to from into onto out up off over under between during before after through
not no yes
here there again once just also too very really only even still already ever yet quite
all any some each both such other another same own more most much many few
s t d ll m re ve
let get got im ive dont oh hey hi hello ok okay yeah
please thanks thank";

static SET: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

pub(super) fn is_stop_word(word: &str) -> bool {
    SET.contains(word)
}
