//! Where tests make system calls fail. In the program itself there is nothing here.

#[cfg(not(test))]
mod absent {
    use std::io;

    use crate::disk::DiskCall;

    pub(in crate::disk) fn at(_: DiskCall) -> io::Result<()> {
        Ok(())
    }

    pub(in crate::disk) fn most(_: DiskCall, bytes: usize) -> io::Result<usize> {
        Ok(bytes)
    }
}

#[cfg(not(test))]
pub(in crate::disk) use absent::{at, most};

#[cfg(test)]
pub(in crate::disk) use test::{at, most};

#[cfg(test)]
pub(crate) mod test {
    //! A fault is set for one thread: the k-th call fails, once or from then on. A thread whose
    //! calls all fail from the k-th on leaves the disk as a process would that was killed there.

    use std::cell::RefCell;
    use std::io;

    use crate::disk::DiskCall;

    /// How a call fails.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum FailureMode {
        /// The call fails with this error of the system, the next ones succeed.
        Once(i32),
        /// The call and all after it fail with this error.
        Always(i32),
        /// The process is gone before the call.
        Dead,
        /// A write does half of its work, then the process is gone.
        Torn,
        /// A write does half of its work, and the next ones all of theirs.
        Short,
    }

    #[derive(Clone, Copy, Debug)]
    struct FailurePlan {
        how: FailureMode,
        left: usize,
        struck: bool,
    }

    type DiskCallHook = Box<dyn FnMut(DiskCall)>;

    thread_local! {
        static PLAN: RefCell<Option<FailurePlan>> = const { RefCell::new(None) };
        static HOOK: RefCell<Option<DiskCallHook>> = const { RefCell::new(None) };
    }

    /// Runs `job` with the k-th call failing, counted from 0; says whether it came to that.
    pub(crate) fn with<T>(k: usize, how: FailureMode, job: impl FnOnce() -> T) -> (T, bool) {
        let plan = FailurePlan {
            how,
            left: k,
            struck: false,
        };
        PLAN.set(Some(plan));
        let result = job();
        let struck = PLAN.take().is_some_and(|plan| plan.struck);
        (result, struck)
    }

    /// Runs `job` and calls `hook` before every call.
    pub(crate) fn watched<T>(hook: impl FnMut(DiskCall) + 'static, job: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        let result = job();
        HOOK.set(None);
        result
    }

    fn told(what: DiskCall) {
        let hook = HOOK.take();
        if let Some(mut hook) = hook {
            hook(what);
            HOOK.set(Some(hook));
        }
    }

    fn gone() -> io::Error {
        io::Error::other("the process is gone")
    }

    /// What is to happen at this call: nothing, or the fault.
    fn strike() -> Option<FailureMode> {
        PLAN.with_borrow_mut(|plan| {
            let plan = plan.as_mut()?;
            if plan.struck {
                return match plan.how {
                    FailureMode::Once(_) | FailureMode::Short => None,
                    // What is left after half a write is nothing.
                    FailureMode::Torn => Some(FailureMode::Dead),
                    lasting => Some(lasting),
                };
            }
            if plan.left > 0 {
                plan.left -= 1;
                return None;
            }
            plan.struck = true;
            Some(plan.how)
        })
    }

    pub(in crate::disk) fn at(what: DiskCall) -> io::Result<()> {
        told(what);
        match strike() {
            None | Some(FailureMode::Short) => Ok(()),
            Some(FailureMode::Once(code) | FailureMode::Always(code)) => {
                Err(io::Error::from_raw_os_error(code))
            }
            Some(FailureMode::Dead | FailureMode::Torn) => Err(gone()),
        }
    }

    pub(in crate::disk) fn most(what: DiskCall, bytes: usize) -> io::Result<usize> {
        told(what);
        match strike() {
            None => Ok(bytes),
            Some(FailureMode::Short | FailureMode::Torn) if bytes > 1 => Ok(bytes / 2),
            Some(FailureMode::Short) => Ok(bytes),
            Some(FailureMode::Once(code) | FailureMode::Always(code)) => {
                Err(io::Error::from_raw_os_error(code))
            }
            Some(FailureMode::Dead | FailureMode::Torn) => Err(gone()),
        }
    }
}
