//! Tokens, cookies and tickets: what proves that somebody may ask.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The alphabet of what stands in addresses.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How many characters of it a secret has: 192 bits.
const LENGTH: usize = 32;

/// How many browsers may be logged in; the first one to come is the first to go.
const LOGINS: usize = 64;

/// How long a ticket is good.
const SOON: Duration = Duration::from_secs(60);

/// How many wrong tokens may be tried at once; one more each second.
const TRIES: f64 = 10.0;

/// Everything that opens a door.
pub struct Keys {
    token: String,
    inner: Mutex<Inner>,
}

struct Inner {
    cookies: VecDeque<String>,
    tickets: Vec<(String, Instant)>,
    tries: f64,
    tried: Instant,
}

/// What came of a login.
#[derive(Debug, PartialEq, Eq)]
pub enum Login {
    /// The cookie that was given.
    Cookie(String),
    /// The token is wrong.
    Wrong,
    /// Too many wrong ones came before.
    TooMany,
}

impl Keys {
    /// New keys, good as long as this process lives.
    pub fn new() -> io::Result<Keys> {
        Ok(Keys {
            token: fresh()?,
            inner: Mutex::new(Inner {
                cookies: VecDeque::new(),
                tickets: Vec::new(),
                tries: TRIES,
                tried: Instant::now(),
            }),
        })
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A token that is good once, soon; the token itself if there is no randomness left.
    pub fn ticket(&self) -> String {
        let Ok(ticket) = fresh() else {
            return self.token.clone();
        };
        let mut inner = self.lock();
        inner.tickets.push((ticket.clone(), Instant::now()));
        ticket
    }

    /// Whether this is the token.
    pub fn is_token(&self, text: &[u8]) -> bool {
        same(text, self.token.as_bytes())
    }

    /// Whether this is the cookie of somebody who logged in.
    pub fn is_cookie(&self, text: &[u8]) -> bool {
        let inner = self.lock();
        // All are compared, so that the time tells nothing.
        let fits = inner.cookies.iter().map(|one| same(text, one.as_bytes()));
        fits.fold(false, |any, fits| any | fits)
    }

    /// Gives a cookie for the token, or for a ticket, which is then used up.
    pub fn login(&self, text: &[u8]) -> io::Result<Login> {
        let cookie = fresh()?;
        let mut inner = self.lock();
        let now = Instant::now();
        let passed = now.duration_since(inner.tried).as_secs_f64();
        inner.tries = (inner.tries + passed).min(TRIES);
        inner.tried = now;
        if inner.tries < 1.0 {
            return Ok(Login::TooMany);
        }
        inner
            .tickets
            .retain(|(_, made)| now.duration_since(*made) < SOON);
        let ticket = inner
            .tickets
            .iter()
            .position(|(ticket, _)| same(text, ticket.as_bytes()));
        if !self.is_token(text) && ticket.is_none() {
            inner.tries -= 1.0;
            return Ok(Login::Wrong);
        }
        if let Some(at) = ticket {
            inner.tickets.remove(at);
        }
        if inner.cookies.len() == LOGINS {
            inner.cookies.pop_front();
        }
        inner.cookies.push_back(cookie.clone());
        Ok(Login::Cookie(cookie))
    }

    /// Forgets a cookie.
    pub fn logout(&self, text: &[u8]) {
        self.lock()
            .cookies
            .retain(|one| !same(text, one.as_bytes()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh() -> io::Result<String> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    Ok(bytes.into_iter().map(letter).collect())
}

/// Compares without telling by the time it takes where two texts differ.
fn same(one: &[u8], two: &[u8]) -> bool {
    if one.len() != two.len() {
        return false;
    }
    let differences = one.iter().zip(two).map(|(one, two)| one ^ two);
    let sum = differences.fold(0, |sum, difference| sum | difference);
    std::hint::black_box(sum) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_opens_and_nothing_else_does() {
        let keys = Keys::new().unwrap();
        assert!(keys.token().len() >= 22);
        assert!(keys.token().bytes().all(|byte| ALPHABET.contains(&byte)));
        assert!(keys.is_token(keys.token().as_bytes()));
        let cut = &keys.token()[1..];
        for wrong in ["", "x", cut, &format!("{}x", keys.token())] {
            assert!(!keys.is_token(wrong.as_bytes()));
            assert_eq!(keys.login(wrong.as_bytes()).unwrap(), Login::Wrong);
        }
        assert_ne!(keys.token(), Keys::new().unwrap().token());
    }

    #[test]
    fn a_cookie_is_given_for_the_token_and_is_not_the_token() {
        let keys = Keys::new().unwrap();
        let Login::Cookie(cookie) = keys.login(keys.token().as_bytes()).unwrap() else {
            panic!("no cookie");
        };
        assert_ne!(cookie, keys.token());
        assert!(keys.is_cookie(cookie.as_bytes()) && !keys.is_token(cookie.as_bytes()));
        keys.logout(cookie.as_bytes());
        assert!(!keys.is_cookie(cookie.as_bytes()));
    }

    #[test]
    fn a_ticket_is_good_once() {
        let keys = Keys::new().unwrap();
        let ticket = keys.ticket();
        assert!(!keys.is_token(ticket.as_bytes()), "only for a login");
        assert!(matches!(
            keys.login(ticket.as_bytes()).unwrap(),
            Login::Cookie(_)
        ));
        assert_eq!(keys.login(ticket.as_bytes()).unwrap(), Login::Wrong);
    }

    #[test]
    fn guessing_is_slowed_down() {
        let keys = Keys::new().unwrap();
        let tries = (0..50).map(|_| keys.login(b"wrong").unwrap());
        let late = tries.filter(|login| *login == Login::TooMany).count();
        assert!(late >= 35, "{late}");
    }

    #[test]
    fn only_so_many_are_logged_in() {
        let keys = Keys::new().unwrap();
        let login = || match keys.login(keys.token().as_bytes()).unwrap() {
            Login::Cookie(cookie) => cookie,
            other => panic!("{other:?}"),
        };
        let first = login();
        (0..LOGINS).for_each(|_| drop(login()));
        assert!(!keys.is_cookie(first.as_bytes()));
        assert_eq!(keys.lock().cookies.len(), LOGINS);
    }
}
