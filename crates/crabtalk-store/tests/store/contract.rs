//! The file store fulfils the contract of its port.

use crate::support::Home;
use crate::support::Op;
use crabtalk_domain::storage::Storage;
use crabtalk_testkit::contract::{Subject, check};
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
