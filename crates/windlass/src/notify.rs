//! Tells systemd that the service is ready, if systemd asked (`Type=notify`).

use std::{
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

const READY: &[u8] = b"READY=1";

/// Sends `READY=1` to the socket that `NOTIFY_SOCKET` names.
pub(crate) fn ready(socket: &OsStr) -> io::Result<()> {
    let address = match socket.as_bytes() {
        // How systemd writes an address in the abstract namespace.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(READY, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(listener: &UnixDatagram) -> Vec<u8> {
        let mut message = [0; 64];
        let length = listener.recv(&mut message).unwrap();
        message[..length].to_vec()
    }

    #[test]
    fn a_socket_in_the_file_system_hears() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        ready(path.as_os_str()).unwrap();
        assert_eq!(received(&listener), READY);
    }

    #[test]
    fn an_abstract_socket_hears() {
        let name = format!("windlass-notify-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        ready(OsStr::new(&format!("@{name}"))).unwrap();
        assert_eq!(received(&listener), READY);
    }
}
