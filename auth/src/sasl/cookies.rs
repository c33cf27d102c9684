//! The text of a keyring: one cookie a line, `number seconds hexadecimal`.

use super::Cookie;
use everywire_model::hex;

/// When a cookie is not offered any more and a new one is made, in seconds.
pub(super) const FRESH: u64 = 5 * 60;
/// When a cookie is dropped, in seconds: later than it is offered, for those who just got its number.
const KEPT: u64 = 7 * 60;
/// How far in the future a cookie may come from, in seconds: clocks are set back a little, and not further.
const AHEAD: u64 = 5 * 60;
/// The most cookies in a file; more are dropped.
const MOST: usize = 256;

/// The cookies of a file. A line that is none is passed over, as other implementations do.
pub(super) fn parse(text: &[u8]) -> Vec<Cookie> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<Cookie> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (id, created, secret) = (parts.next()?, parts.next()?, parts.next()?);
    let secret_is_hex = !secret.is_empty() && hex::decode(secret).is_some();
    (parts.next().is_none() && secret_is_hex).then_some(())?;
    let id = u32::try_from(number(id)?).ok()?;
    Some(Cookie { id, created: number(created)?, secret: String::from_utf8(secret.to_vec()).ok()? })
}

/// A decimal number of digits only.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    // `parse` would take a sign.
    digits.iter().all(u8::is_ascii_digit).then(|| str::from_utf8(digits).ok()?.parse().ok())?
}

/// The file's text of the cookies.
pub(super) fn print(cookies: &[Cookie]) -> String {
    cookies.iter().map(|cookie| format!("{} {} {}\n", cookie.id, cookie.created, cookie.secret)).collect()
}

/// Drops what is too old, or from too far in the future, at `now`; and the oldest if there would be too many with one
/// more.
pub(super) fn drop_old(cookies: &mut Vec<Cookie>, now: u64) {
    cookies.retain(|cookie| cookie.created <= now + AHEAD && now <= cookie.created.saturating_add(KEPT));
    cookies.sort_by_key(|cookie| cookie.created);
    let many = (cookies.len() + 1).saturating_sub(MOST);
    cookies.drain(..many);
}

/// The newest cookie that may still be offered at `now`.
pub(super) fn newest(cookies: &[Cookie], now: u64) -> Option<&Cookie> {
    let offered =
        |cookie: &&Cookie| cookie.created <= now + AHEAD && now < cookie.created.saturating_add(FRESH);
    cookies.iter().filter(offered).max_by_key(|cookie| cookie.created)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(id: u32, created: u64) -> Cookie {
        Cookie { id, created, secret: "00ff".to_owned() }
    }

    #[test]
    fn there_and_back() {
        let cookies = vec![cookie(1, 100), cookie(u32::MAX, u64::MAX)];
        assert_eq!(print(&cookies), "1 100 00ff\n4294967295 18446744073709551615 00ff\n");
        assert_eq!(parse(print(&cookies).as_bytes()), cookies);
    }

    #[test]
    fn odd_lines_are_passed_over() {
        let text = b"1 100 00ff\n\n+2 100 00ff\n3 -1 00ff\n4 100 0f0\n5 100\n6 100 00ff more\n7 100 \n8 100 zz\n4294967296 1 00\n \xff\n9 100 aA";
        assert_eq!(parse(text).iter().map(|cookie| cookie.id).collect::<Vec<_>>(), [1, 9]);
    }

    #[test]
    fn ages() {
        let now = 10_000;
        let mut cookies: Vec<_> =
            [now - KEPT - 1, now - KEPT, now - FRESH, now - FRESH + 1, now, now + AHEAD, now + AHEAD + 1]
                .into_iter()
                .zip(0..)
                .map(|(created, id)| cookie(id, created))
                .collect();
        drop_old(&mut cookies, now);
        assert_eq!(cookies.iter().map(|cookie| cookie.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(newest(&cookies, now).map(|cookie| cookie.id), Some(5));
        assert_eq!(newest(&cookies[..3], now).map(|cookie| cookie.id), Some(3));
        assert_eq!(newest(&cookies[..2], now), None);
    }

    #[test]
    fn a_full_file_makes_room() {
        let mut cookies: Vec<_> = (0..300).map(|id| cookie(id, 1000)).collect();
        drop_old(&mut cookies, 1000);
        assert_eq!((cookies.len(), cookies[0].id), (MOST - 1, 45));
    }
}
