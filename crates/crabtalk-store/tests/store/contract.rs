//! The file store and the database of records fulfil the contracts of their ports.

use crate::support::Home;
use crate::support::Op;
use crabtalk_domain::storage::Storage;
use crabtalk_store::Records;
use crabtalk_testkit::contract::{Subject, check, records};
use std::io::ErrorKind;

impl Subject for Home {
    fn storage(&self) -> &dyn Storage {
        &self.store
    }

    fn restart(&mut self) {
        Home::restart(self);
    }

    fn cut_power(&mut self) {
        self.disk.cut_power(&self.sessions());
        Home::restart(self);
    }

    fn set_full(&mut self, full: bool) {
        if full {
            self.disk
                .fail_always(&[Op::Create, Op::Write], ErrorKind::StorageFull);
        } else {
            self.disk.heal();
        }
    }
}

#[tokio::test]
async fn file_store_fulfils_the_contract() {
    check(Home::new).await;
}

#[tokio::test]
async fn database_of_records_fulfils_the_contracts() {
    let folder = || tempfile::tempdir().unwrap();
    let (one, two, three, four, five) = (folder(), folder(), folder(), folder(), folder());
    let open = |folder: &tempfile::TempDir| Box::new(Records::in_state(folder.path()));
    records::events(|| open(&one)).await;
    records::crons(|| open(&two)).await;
    records::costs(|| open(&three)).await;
    records::changes(|| open(&four)).await;
    records::audit(|| open(&five)).await;
}
