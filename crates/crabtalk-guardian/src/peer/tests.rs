use super::*;
use std::collections::BTreeMap;

const ME: i32 = 100;

/// Start time and parent.
type Entry = (u64, i32);

/// A process table that changes at the n-th read.
struct Table {
    alive: BTreeMap<i32, Entry>,
    looks: usize,
    /// Changes: before this read, this id gets this entry.
    changes: Vec<(usize, i32, Option<Entry>)>,
}

/// Start times: all in one clock tick, or one after the other.
const BEGINS: [fn(i32) -> u64; 2] = [|_| 1, |pid| pid.unsigned_abs().into()];

impl Table {
    /// Creates a table from `(id, parent)` pairs.
    fn new(begin: fn(i32) -> u64, alive: &[(i32, i32)]) -> Self {
        let alive = alive.iter();
        Self {
            alive: alive.map(|(pid, up)| (*pid, (begin(*pid), *up))).collect(),
            looks: 0,
            changes: Vec::new(),
        }
    }

    /// Before the n-th read, a process ends and its children get another parent.
    fn ends(mut self, look: usize, pid: i32, heir: i32) -> Self {
        self.changes.push((look, pid, None));
        for (child, (started, up)) in &self.alive {
            if *up == pid {
                self.changes.push((look, *child, Some((*started, heir))));
            }
        }
        self
    }

    fn look(&mut self, pid: i32) -> Result<Stat, Refusal> {
        self.looks += 1;
        for (look, pid, now) in &self.changes {
            if *look == self.looks {
                match now {
                    Some(now) => self.alive.insert(*pid, *now),
                    None => self.alive.remove(pid),
                };
            }
        }
        match self.alive.get(&pid) {
            Some((started, parent)) => Ok(Stat::for_test(pid, *started, *parent)),
            None => Err(refusal(pid, io::ErrorKind::NotFound.into())),
        }
    }

    fn descends(&mut self, pid: i32) -> Result<bool, Refusal> {
        let peer = self.look(pid)?;
        descends(peer, ME, &mut |pid| self.look(pid))
    }
}

/// A peer three levels below a guardian, and the shell above the
/// daemon.
const GUARDED: &[(i32, i32)] = &[
    (10, 1),
    (ME, 10),
    (200, ME),
    (300, 200),
    (400, 300),
    (500, 400),
];

#[test]
fn who_has_the_daemon_above_is_told_from_who_has_not() {
    let mut all = GUARDED.to_vec();
    all.extend([(20, 10), (21, 20), (30, 0)]);
    for begin in BEGINS {
        let mut table = Table::new(begin, &all);
        for below in [200, 300, 400, 500] {
            assert!(matches!(table.descends(below), Ok(true)), "{below}");
        }
        for outside in [10, 20, 21, 30] {
            assert!(matches!(table.descends(outside), Ok(false)), "{outside}");
        }
    }
}

#[test]
fn an_older_parent_is_believed_at_one_look() {
    let [within_one_tick, one_after_the_other] = BEGINS.map(|begin| {
        let mut table = Table::new(begin, GUARDED);
        assert!(matches!(table.descends(500), Ok(true)));
        table.looks
    });
    assert_eq!((within_one_tick, one_after_the_other), (7, 4));
}

/// A race that once admitted a command: a parent that ended between two reads hid
/// the rest of the chain.
#[test]
fn no_end_of_any_parent_at_any_look_hides_the_daemon() {
    for (begin, look) in BEGINS
        .into_iter()
        .flat_map(|b| (1..20).map(move |n| (b, n)))
    {
        for dying in [300, 400] {
            let mut table = Table::new(begin, GUARDED).ends(look, dying, 200);
            assert!(
                !matches!(table.descends(500), Ok(false)),
                "{dying} at {look}"
            );
        }
        // The guardian itself ends, and its children get the daemon as parent.
        let mut table = Table::new(begin, GUARDED).ends(look, 200, ME);
        assert!(matches!(table.descends(500), Ok(true)), "{look}");
    }
}

#[test]
fn a_number_that_changed_hands_leads_nowhere() {
    for (begin, look) in BEGINS
        .into_iter()
        .flat_map(|b| (1..20).map(move |n| (b, n)))
    {
        let mut table = Table::new(begin, GUARDED);
        // The parent ends, and its id goes to a process outside that began
        // later than it and not before the child.
        let later = begin(500).max(2);
        table.changes = vec![
            (look, 400, Some((later, 1))),
            (look, 500, Some((begin(500), 200))),
        ];
        assert!(!matches!(table.descends(500), Ok(false)), "{look}");
    }
}

#[test]
fn an_ancestor_that_cannot_be_read_is_a_refusal() {
    for begin in BEGINS {
        let mut table = Table::new(begin, &[(20, 19), (10, 1), (ME, 10)]);
        let Err(Refusal::Unreadable { pid, .. }) = table.descends(20) else {
            panic!("not refused");
        };
        assert_eq!(pid, 19);
    }
}

#[test]
fn one_who_ends_parents_without_end_is_refused() {
    for begin in BEGINS {
        let mut table = Table::new(begin, &[(10, 1), (ME, 10), (20, 19), (19, 10)]);
        let peer = Stat::for_test(20, begin(20), 19);
        let told = descends(peer, ME, &mut |pid| match pid {
            // The parent is always gone when it is read.
            19 => Err(refusal(pid, io::ErrorKind::NotFound.into())),
            _ => table.look(pid),
        });
        assert!(told.is_err());
    }
}

#[test]
fn a_lack_of_descriptors_is_not_the_peers_fault() {
    for begin in BEGINS {
        let mut looks = 0;
        let told = descends(Stat::for_test(500, begin(500), 400), ME, &mut |pid| {
            looks += 1;
            if looks == 2 {
                let lack = rustix::io::Errno::MFILE;
                return Err(refusal(pid, lack.into()));
            }
            Ok(Stat::for_test(pid, begin(pid), pid - 100))
        });
        assert!(matches!(told, Err(Refusal::Exhausted(_))), "{told:?}");
    }
}
