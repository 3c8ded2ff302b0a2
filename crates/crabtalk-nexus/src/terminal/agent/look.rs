//! Probes an agent without typing.

use super::Terminal;
use crate::backend::{Evidence, Failure, Look, Probe, Source};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Terminal {
    pub(super) async fn probed(&self) -> Result<Probe, Failure> {
        let Ok(window) = self.shared.running() else {
            return Ok(nothing("it does not run"));
        };
        self.shared.catch_up();
        let Some(look) = self.shared.tmux.look(&window.pane).await? else {
            return Ok(nothing("its window is gone"));
        };
        let kind = &self.shared.spec.kind;
        let session = self.shared.session();
        let mut hasher = DefaultHasher::new();
        (kind.still(&look), session.length(), window.pid).hash(&mut hasher);
        let shown = kind.prompt(&look);
        let live = session.live.as_ref();
        let prompt = live.filter(|live| shown.as_ref().is_some_and(|shown| shown.key == live.key));
        let detail = format!(
            "process {}, {} bytes of transcript, a screen of {} lines",
            window.pid,
            session.length(),
            look.lines.len()
        );
        Ok(Probe {
            alive: !look.is_dead,
            digest: format!("{:016x}", hasher.finish()),
            prompt: prompt.map(|live| live.prompt.clone()),
            evidence: Evidence::new(Source::Screen, detail),
        })
    }

    pub(super) async fn seen(&self) -> Result<Look, Failure> {
        let window = self.shared.tmux.window_of(&self.shared.spec.name).await?;
        let window = window.ok_or_else(|| Failure::NotRunning(self.shared.spec.name.clone()))?;
        let text = self.shared.tmux.history(&window.pane).await?;
        let mut attach = self.shared.tmux.words();
        let target = format!("{}:{}", self.shared.at, window.window);
        attach.extend(["attach-session".to_owned(), "-t".to_owned(), target]);
        Ok(Look {
            text: text.trim_end().to_owned(),
            attach,
        })
    }
}

fn nothing(detail: &str) -> Probe {
    Probe {
        alive: false,
        digest: String::new(),
        prompt: None,
        evidence: Evidence::new(Source::Process, detail),
    }
}
