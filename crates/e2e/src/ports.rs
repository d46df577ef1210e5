//! Ports that were free a moment ago. Owns nothing: between the answer and its use another process
//! may take the port, which is why peers are started again on "address in use".

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// `N` different ports, by binding port 0 on loopback. All are held until the last is known.
pub fn free<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::with_capacity(N);
    for _ in 0..N {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind a free port")?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().context("read the port that was bound")?.port();
    }
    Ok(ports)
}
