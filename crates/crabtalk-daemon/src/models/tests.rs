use super::*;

fn nothing(active: Option<&str>) -> Chosen {
    Chosen {
        providers: Vec::new(),
        active: active.map(str::to_owned),
        detect: true,
    }
}

/// A node without configuration, with a key in its environment or without.
fn models(key: bool, active: Option<&str>) -> Arc<Models> {
    let mut options = Options::default();
    if key {
        let key = ("ANTHROPIC_API_KEY".to_owned(), "sk-1".to_owned());
        options.env.extend([key]);
    }
    Models::new(nothing(active), options).unwrap()
}

#[tokio::test]
async fn a_search_is_made_once_and_its_outcome_said_once() {
    let models = models(true, None);
    assert_eq!((models.active(), models.list().len()), (String::new(), 0));
    models.find().await.unwrap();
    let first = models.list()[0].name.clone();
    assert_eq!(models.active(), first);
    let notice = models.take_notice().unwrap();
    assert!(
        notice.contains("because ANTHROPIC_API_KEY is set"),
        "{notice}"
    );
    // A reload keeps what was found, another active model included.
    let other = models.list()[1].name.clone();
    models.replace(nothing(Some(&other))).unwrap();
    assert_eq!(models.active(), other);
    models.find().await.unwrap();
    assert_eq!(models.take_notice(), None);
    assert!(models.replace(nothing(Some("unheard-of"))).is_err());
    assert_eq!(models.active(), other);
}

#[tokio::test]
async fn a_demonstration_is_looked_beyond_after_a_reload() {
    let models = models(false, None);
    models.find().await.unwrap();
    assert!(models.take_notice().is_some());
    models.replace(nothing(None)).unwrap();
    assert!(models.detected().is_none(), "it looks again");
    models.find().await.unwrap();
    assert_eq!(models.active(), "offline");
    assert_eq!(models.take_notice(), None);
}

#[tokio::test]
async fn unknown_active_model_is_an_error() {
    let models = models(false, Some("sonnet"));
    for _ in 0..2 {
        let error = models.find().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotConfigured);
        assert!(
            error.message.contains("the model \"sonnet\" is unknown"),
            "{error}"
        );
    }
    assert_eq!(models.take_notice(), None);
}

#[tokio::test]
async fn with_everything_switched_off_nothing_is_looked_for() {
    let models = models(true, None);
    let off = Chosen {
        detect: false,
        ..nothing(None)
    };
    models.replace(off).unwrap();
    models.find().await.unwrap();
    assert_eq!((models.list().len(), models.take_notice()), (0, None));
}
