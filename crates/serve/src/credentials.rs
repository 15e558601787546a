//! The token, access keys and tickets: what proves that somebody may ask.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connections::network;

/// The alphabet of what stands in addresses.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How many characters of it a secret has: 192 bits.
const LENGTH: usize = 32;

/// How many may be logged in; the first one to come is the first to go.
const LOGINS: usize = 256;

/// How long a ticket is good.
const SOON: Duration = Duration::from_secs(60);

/// How many wrong tokens one peer may try at once; one more each second.
const TRIES: f64 = 10.0;

/// Of how many peers it is known what they tried.
const PEERS: usize = 1024;

/// Everything that opens a door.
pub struct ServerCredentials {
    token: String,
    inner: Mutex<CredentialState>,
}

struct CredentialState {
    /// One for each login: they go into browsers, where the token does not stay.
    access: VecDeque<String>,
    tickets: Vec<(String, Instant)>,
    wrong: WrongTokens,
}

/// What came of a login.
#[derive(Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The access key that was given.
    Access(String),
    /// The token is wrong.
    Wrong,
    /// The token is wrong, and so were too many before it.
    TooMany,
}

impl ServerCredentials {
    /// New keys, good as long as this process lives.
    pub fn new() -> io::Result<ServerCredentials> {
        Ok(ServerCredentials {
            token: fresh()?,
            inner: Mutex::new(CredentialState {
                access: VecDeque::new(),
                tickets: Vec::new(),
                wrong: WrongTokens::default(),
            }),
        })
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A token that is good for one login, soon.
    pub fn ticket(&self) -> io::Result<String> {
        let ticket = fresh()?;
        let mut inner = self.lock();
        inner.tickets.push((ticket.clone(), Instant::now()));
        Ok(ticket)
    }

    /// Whether this is the token, or the access key of somebody who logged in.
    pub fn opens(&self, text: &[u8]) -> bool {
        let is_access = any_same(text, self.lock().access.iter());
        self.is_token(text) | is_access
    }

    /// Gives an access key for the token, or for a ticket, which is then used up. A ticket is good
    /// only from the user who has opened it. Wrong ones are counted for each peer; the right one
    /// is never refused for what was tried before it.
    pub fn login(
        &self,
        text: &[u8],
        peer: IpAddr,
        is_owner: impl FnOnce() -> bool,
    ) -> io::Result<LoginOutcome> {
        let access = fresh()?;
        let mut inner = self.lock();
        let now = Instant::now();
        let inner = &mut *inner;
        let fits = |(ticket, _): &(String, Instant)| same(text, ticket.as_bytes());
        let good = |made: Instant| now.duration_since(made) < SOON;
        inner.tickets.retain(|(_, made)| good(*made));
        let is_ticket = any_same(text, inner.tickets.iter().map(|(ticket, _)| ticket));
        let is_ticket = is_ticket && is_owner();
        if !(self.is_token(text) | is_ticket) {
            return Ok(match inner.wrong.count(peer, now) {
                true => LoginOutcome::Wrong,
                false => LoginOutcome::TooMany,
            });
        }
        inner.tickets.retain(|ticket| !fits(ticket));
        if inner.access.len() == LOGINS {
            inner.access.pop_front();
        }
        inner.access.push_back(access.clone());
        Ok(LoginOutcome::Access(access))
    }

    /// Makes an access key void.
    pub fn logout(&self, text: &[u8]) {
        let mut inner = self.lock();
        inner.access.retain(|one| !same(text, one.as_bytes()));
    }

    fn is_token(&self, text: &[u8]) -> bool {
        same(text, self.token.as_bytes())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CredentialState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many more wrong tokens each peer may try, and when that was so.
#[derive(Default)]
struct WrongTokens {
    left: HashMap<IpAddr, (f64, Instant)>,
}

impl WrongTokens {
    /// Counts a wrong token; `false` if there were too many.
    fn count(&mut self, peer: IpAddr, now: Instant) -> bool {
        let left = |(left, at): &(f64, Instant)| {
            let passed = now.duration_since(*at).as_secs_f64();
            (left + passed).min(TRIES)
        };
        if self.left.len() >= PEERS {
            // Who has all tries again need not be known; a crowd of others is forgotten.
            self.left.retain(|_, tried| left(tried) < TRIES);
            if self.left.len() >= PEERS {
                self.left.clear();
            }
        }
        let tried = self.left.entry(network(peer)).or_insert((TRIES, now));
        *tried = (left(tried), now);
        let allowed = tried.0 >= 1.0;
        if allowed {
            tried.0 -= 1.0;
        }
        allowed
    }
}

fn fresh() -> io::Result<String> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    Ok(bytes.into_iter().map(letter).collect())
}

/// Whether it is one of these. All are compared, so that the time tells nothing.
fn any_same<'a>(text: &[u8], all: impl Iterator<Item = &'a String>) -> bool {
    all.map(|one| same(text, one.as_bytes()))
        .fold(false, |any, fits| any | fits)
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

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn login(keys: &ServerCredentials, text: &str) -> LoginOutcome {
        keys.login(text.as_bytes(), HERE, || true).unwrap()
    }

    fn access(keys: &ServerCredentials, text: &str) -> String {
        match login(keys, text) {
            LoginOutcome::Access(key) => key,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_token_opens_and_nothing_else_does() {
        let keys = ServerCredentials::new().unwrap();
        assert!(keys.token().len() >= 22);
        assert!(keys.token().bytes().all(|byte| ALPHABET.contains(&byte)));
        assert!(keys.opens(keys.token().as_bytes()));
        let cut = &keys.token()[1..];
        for wrong in ["", "x", cut, &format!("{}x", keys.token())] {
            assert!(!keys.opens(wrong.as_bytes()));
            assert_eq!(login(&keys, wrong), LoginOutcome::Wrong);
        }
        assert_ne!(keys.token(), ServerCredentials::new().unwrap().token());
    }

    #[test]
    fn a_login_gives_a_key_of_its_own_that_ends_with_the_logout() {
        let keys = ServerCredentials::new().unwrap();
        let (one, two) = (access(&keys, keys.token()), access(&keys, keys.token()));
        assert!(one != two && one != keys.token());
        assert!(keys.opens(one.as_bytes()) && keys.opens(two.as_bytes()));
        assert_eq!(
            login(&keys, &one),
            LoginOutcome::Wrong,
            "no key makes another"
        );
        keys.logout(one.as_bytes());
        assert!(!keys.opens(one.as_bytes()) && keys.opens(two.as_bytes()));
        keys.logout(keys.token().as_bytes());
        assert!(keys.opens(keys.token().as_bytes()));
    }

    #[test]
    fn a_ticket_is_good_for_one_login() {
        let keys = ServerCredentials::new().unwrap();
        let ticket = keys.ticket().unwrap();
        assert!(!keys.opens(ticket.as_bytes()), "only for a login");
        let stolen = keys.login(ticket.as_bytes(), HERE, || false);
        assert_eq!(
            stolen.unwrap(),
            LoginOutcome::Wrong,
            "another user has read it"
        );
        access(&keys, &ticket);
        assert_eq!(login(&keys, &ticket), LoginOutcome::Wrong);
    }

    #[test]
    fn guessing_is_slowed_down_and_the_right_token_still_works_at_once() {
        let keys = ServerCredentials::new().unwrap();
        let ticket = keys.ticket().unwrap();
        let tries = (0..50).map(|_| login(&keys, "wrong"));
        let late = tries
            .filter(|login| *login == LoginOutcome::TooMany)
            .count();
        assert!(late >= 35, "{late}");
        access(&keys, keys.token());
        access(&keys, &ticket);
    }

    #[test]
    fn who_guesses_slows_down_nobody_else() {
        let keys = ServerCredentials::new().unwrap();
        (0..50).for_each(|_| drop(login(&keys, "wrong")));
        let other = IpAddr::from([192, 0, 2, 7]);
        assert_eq!(
            keys.login(b"wrong", other, || true).unwrap(),
            LoginOutcome::Wrong
        );
        // One network of the newer addresses is one peer.
        let six = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
        let tries = (0..50).map(|n| keys.login(b"wrong", six(n), || true).unwrap());
        assert!(
            tries
                .filter(|login| *login == LoginOutcome::TooMany)
                .count()
                >= 35
        );
    }

    #[test]
    fn what_is_known_of_peers_is_bounded() {
        let mut wrong = WrongTokens::default();
        let now = Instant::now();
        for n in 0..5000_u32 {
            assert!(wrong.count(IpAddr::from(n.to_be_bytes()), now));
        }
        assert!(wrong.left.len() <= PEERS);
    }

    #[test]
    fn only_so_many_are_logged_in() {
        let keys = ServerCredentials::new().unwrap();
        let first = access(&keys, keys.token());
        (0..LOGINS).for_each(|_| drop(access(&keys, keys.token())));
        assert!(!keys.opens(first.as_bytes()));
        assert_eq!(keys.lock().access.len(), LOGINS);
    }
}
