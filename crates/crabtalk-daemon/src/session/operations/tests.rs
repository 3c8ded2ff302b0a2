use super::is_of_the_first_generation;
use crabtalk_proto::codec::{encode, first_field};
use crabtalk_proto::{ClientMessage, OPERATIONS};

/// Numbers of requests that clients of the 0.0.20 generation do not know begin here.
const FIRST_OF_OURS: u32 = 200;

#[test]
fn whoever_sends_a_request_of_ours_knows_what_is_newer() {
    for operation in OPERATIONS {
        let request = operation.empty();
        let is_known_to_all = is_of_the_first_generation(&request);
        let mut frame = Default::default();
        encode(&ClientMessage { msg: Some(request) }, &mut frame).unwrap();
        let number = first_field(&frame).unwrap();
        assert_eq!(
            is_known_to_all,
            number < FIRST_OF_OURS,
            "{}",
            operation.name
        );
    }
}
