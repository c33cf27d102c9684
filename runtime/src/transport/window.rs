//! The receive window that a TCP peer announces.

use std::os::fd::{AsRawFd, OwnedFd};

/// Where `tcpi_snd_wnd` stands in `struct tcp_info` (`linux/tcp.h`, since Linux 5.4).
const AT: usize = 228;

/// The peer's receive window, in bytes; `None` where the kernel does not tell.
pub(super) fn of_peer(socket: &OwnedFd) -> Option<u32> {
    let mut info = [0u8; AT + 4];
    let mut len = libc::socklen_t::try_from(info.len()).ok()?;
    // SAFETY: the kernel writes at most `len` bytes into `info`, which has that many, and puts how many into `len`.
    let told = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let window = info.get(AT..).and_then(|raw| raw.try_into().ok()).map(u32::from_ne_bytes)?;
    (told == 0 && usize::try_from(len).is_ok_and(|len| len == info.len())).then_some(window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    fn window(receive_buffer: Option<usize>) -> Option<u32> {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let address = listener.local_addr().ok()?;
        let peer =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)
                .ok()?;
        if let Some(size) = receive_buffer {
            rustix::net::sockopt::set_socket_recv_buffer_size(&peer, size).ok()?;
        }
        rustix::net::connect(&peer, &address).ok()?;
        let (accepted, _) = listener.accept().ok()?;
        let found = of_peer(&accepted.into());
        drop(TcpStream::from(peer));
        found
    }

    #[test]
    fn peers_with_small_buffers_have_narrow_windows() {
        let (usual, small) = (window(None), window(Some(8192)));
        assert!(usual.is_some_and(|window| window >= super::super::NARROW), "{usual:?}");
        assert!(small.is_some_and(|window| window < super::super::NARROW), "{small:?}");
    }

    #[test]
    fn other_sockets_have_none() {
        let pair = UnixStream::pair();
        assert!(pair.is_ok_and(|(one, _)| of_peer(&one.into()).is_none()));
    }
}
