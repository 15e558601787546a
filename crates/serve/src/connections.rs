//! Who is connected: how many at once, and who has to go when another one comes.
//!
//! Anybody on this machine can open a connection, and one that says nothing costs its owner
//! nothing. So those that have not shown the token are few, and the oldest of them is closed when
//! a new one comes: the owner is never turned away, and has shown the token long before that many
//! others came. Those that have shown it are counted apart; nobody else can take their place.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// That have not shown the token.
    pub unproven: usize,
    /// That have.
    pub proven: usize,
}

impl ConnectionLimits {
    /// Limits for a process that may have so many files open; half of them stay for the rest of
    /// the program.
    pub fn within(open_files: u64) -> ConnectionLimits {
        let all = usize::try_from(open_files / 2).unwrap_or(usize::MAX);
        let all = all.clamp(12, 600);
        ConnectionLimits {
            unproven: all / 3,
            proven: all - all / 3,
        }
    }

    /// How many of them may listen to events; the others ask.
    pub fn listeners(self) -> usize {
        self.proven * 3 / 4
    }
}

/// All connections.
pub struct Connections {
    limits: ConnectionLimits,
    /// One for each that is open, also while it is being closed.
    files: Arc<Semaphore>,
    open: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    came: u64,
    /// By who they come from, and by when they came.
    unproven: HashMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
    unproven_count: usize,
    proven_count: usize,
}

impl ConnectionTable {
    /// Forgets one that has not shown the token; `false` if it was forgotten before.
    fn forget(&mut self, from: IpAddr, number: u64) -> bool {
        let Some(of_peer) = self.unproven.get_mut(&from) else {
            return false;
        };
        let there = of_peer.remove(&number).is_some();
        if of_peer.is_empty() {
            self.unproven.remove(&from);
        }
        self.unproven_count -= usize::from(there);
        there
    }

    /// Closes the oldest one of whoever has the most, so that a crowd is in its own way only.
    fn close_oldest(&mut self) {
        let crowd = self.unproven.iter().max_by_key(|(_, all)| all.len());
        let oldest = crowd.and_then(|(from, all)| {
            let (number, close) = all.first_key_value()?;
            Some((*from, *number, Arc::clone(close)))
        });
        if let Some((from, number, close)) = oldest {
            self.forget(from, number);
            close.notify_one();
        }
    }
}

/// One connection, as long as it is open.
pub struct Connection {
    all: Arc<Connections>,
    from: IpAddr,
    number: u64,
    close: Arc<Notify>,
    proven: AtomicBool,
}

impl Connections {
    /// Nobody yet.
    pub fn new(limits: ConnectionLimits) -> Arc<Connections> {
        Arc::new(Connections {
            limits,
            files: Arc::new(Semaphore::new(limits.unproven + limits.proven)),
            open: Mutex::default(),
        })
    }

    /// Takes one in. If there are too many, the oldest that has not shown the token is closed, and
    /// this waits until it is: no more files are open than were allowed.
    pub async fn enter(
        self: &Arc<Connections>,
        from: IpAddr,
    ) -> Option<(Arc<Connection>, OwnedSemaphorePermit)> {
        let close = Arc::new(Notify::new());
        let from = network(from);
        let number = {
            let mut open = self.lock();
            if open.unproven_count >= self.limits.unproven {
                open.close_oldest();
            }
            open.came += 1;
            let number = open.came;
            let of_peer = open.unproven.entry(from).or_default();
            of_peer.insert(number, Arc::clone(&close));
            open.unproven_count += 1;
            number
        };
        let connection = Arc::new(Connection {
            all: Arc::clone(self),
            from,
            number,
            close,
            proven: AtomicBool::new(false),
        });
        // Never closed, so there is always one in the end.
        let file = Arc::clone(&self.files).acquire_owned().await.ok()?;
        Some((connection, file))
    }

    /// Makes room where the system has none.
    pub fn close_oldest(&self) {
        self.lock().close_oldest();
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Ends when it has to be closed for another one.
    pub async fn closed(&self) {
        self.close.notified().await;
    }

    /// Notes that it has shown the token, from when on nobody is preferred to it; `false` if too
    /// many have, or if it is being closed.
    pub fn prove(&self) -> bool {
        if self.proven.load(Ordering::Acquire) {
            return true;
        }
        let mut open = self.all.lock();
        if open.proven_count >= self.all.limits.proven || !open.forget(self.from, self.number) {
            return false;
        }
        open.proven_count += 1;
        self.proven.store(true, Ordering::Release);
        true
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        if self.proven.load(Ordering::Acquire) {
            open.proven_count -= 1;
        } else {
            open.forget(self.from, self.number);
        }
    }
}

/// Whose address this is: one machine has a whole network of the newer ones.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) if !six.is_loopback() => {
            let bits = six.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn few() -> Arc<Connections> {
        Connections::new(ConnectionLimits {
            unproven: 2,
            proven: 1,
        })
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(test);
    }

    /// Whether it was told to go.
    async fn goes(connection: &Connection) -> bool {
        tokio::select! {
            biased;
            () = connection.closed() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[test]
    fn the_oldest_that_has_not_shown_the_token_goes_first() {
        run(async {
            let all = few();
            let (one, _one) = all.enter(HERE).await.unwrap();
            let (two, _two) = all.enter(HERE).await.unwrap();
            let (three, _three) = all.enter(HERE).await.unwrap();
            assert!(goes(&one).await);
            assert!(!goes(&two).await && !goes(&three).await);
            assert!(!one.prove(), "it is being closed");
            assert!(two.prove());
            drop((one, _one));
            // The second has shown the token, so the third is the oldest.
            let (_four, _file) = all.enter(HERE).await.unwrap();
            assert!(!goes(&three).await, "there was room");
            drop((three, _three));
            assert!(!goes(&two).await);
        });
    }

    #[test]
    fn a_crowd_is_in_its_own_way_only() {
        run(async {
            let all = Connections::new(ConnectionLimits {
                unproven: 3,
                proven: 5,
            });
            let other = IpAddr::from([192, 0, 2, 7]);
            let (quiet, _quiet) = all.enter(other).await.unwrap();
            let mut crowd = Vec::new();
            for _ in 0..5 {
                crowd.push(all.enter(HERE).await.unwrap());
            }
            assert!(!goes(&quiet).await);
            let mut gone = 0;
            for (one, _) in &crowd {
                gone += usize::from(goes(one).await);
            }
            assert_eq!(gone, 3);
        });
    }

    #[test]
    fn those_with_the_token_are_limited_among_themselves() {
        run(async {
            let all = few();
            let (one, _one) = all.enter(HERE).await.unwrap();
            let (two, _two) = all.enter(HERE).await.unwrap();
            assert!(one.prove() && one.prove());
            assert!(!two.prove(), "one is enough");
            drop((one, _one));
            assert!(two.prove());
        });
    }

    #[test]
    fn nothing_is_left_when_all_have_gone() {
        run(async {
            let all = few();
            for n in 0..10 {
                let (one, _file) = all.enter(HERE).await.unwrap();
                assert!(n % 2 == 0 || one.prove());
            }
            let open = all.lock();
            assert_eq!((open.unproven_count, open.proven_count), (0, 0));
            assert!(open.unproven.is_empty());
            assert_eq!(all.files.available_permits(), 3);
        });
    }

    #[test]
    fn limits_leave_files_for_the_rest() {
        for files in [0, 64, 256, 1024, 20_000, u64::MAX] {
            let limits = ConnectionLimits::within(files);
            let all = limits.unproven + limits.proven;
            assert!(all <= 600 && limits.unproven >= 4 && limits.listeners() < limits.proven);
            assert!(files < 64 || all as u64 <= files / 2, "{files}: {limits:?}");
        }
    }
}
