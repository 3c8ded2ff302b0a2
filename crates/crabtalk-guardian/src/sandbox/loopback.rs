//! Brings up the loopback interface of a new network namespace.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;

/// `RTM_NEWLINK` for interface 1, the loopback interface: sets the flag
/// `IFF_UP` and requests an acknowledgement. Fields are in native byte order.
fn request() -> Vec<u8> {
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes());
    // NLM_F_REQUEST and NLM_F_ACK.
    message.extend(5_u16.to_ne_bytes());
    // Sequence, port; then family, padding and type.
    message.extend([0; 12]);
    // Interface, flags, and the mask of changed flags.
    for field in [1_u32, 1, 1] {
        message.extend(field.to_ne_bytes());
    }
    message
}

/// Brings up the interface. Needs `CAP_NET_ADMIN`, which the first process of a namespace
/// has.
pub(crate) fn bring_up() -> io::Result<()> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    // A header of 16 bytes, then the negated error; zero is success.
    let error = answer[..length].get(16..20);
    match error
        .and_then(|e| <[u8; 4]>::try_from(e).ok())
        .map(i32::from_ne_bytes)
    {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::Error::other("the kernel did not answer")),
    }
}
