//! Many questions at once, each of them several times if need be.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{AnswerProvider, AskError, AskStop, ModelAnswer};

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelQuestion {
    /// The words, for a model: what is wanted, and the text it is about.
    pub text: String,
    /// The text alone, for a command.
    pub material: String,
    /// What is wanted of it.
    pub wish: String,
    /// About how many tokens it is about, which decides how long to wait.
    pub tokens: u64,
    /// How many tokens the answer may take.
    pub limit: u64,
}

/// How long to wait for answers, and how often to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskLimits {
    /// How many questions are on their way at once.
    pub at_once: usize,
    /// How often each is asked at most.
    pub attempts: u32,
    /// How long to wait at first: for less than 1000 tokens, for less than 4000, for more.
    pub timeouts: [Duration; 3],
    /// How long to pause before the second attempt; twice as long before each one after.
    pub pause: Duration,
    /// Whoever asks for a longer pause than this is not asked again.
    pub longest: Duration,
}

impl Default for AskLimits {
    fn default() -> AskLimits {
        AskLimits {
            at_once: 10,
            attempts: 4,
            timeouts: [20, 30, 90].map(Duration::from_secs),
            pause: Duration::from_millis(500),
            longest: Duration::from_secs(300),
        }
    }
}

impl AskLimits {
    /// How long to wait for an answer: half as long again at each attempt (from 0), at most
    /// three times as long.
    pub fn timeout(&self, tokens: u64, attempt: u32) -> Duration {
        let first = match tokens {
            0..1_000 => self.timeouts[0],
            1_000..4_000 => self.timeouts[1],
            _ => self.timeouts[2],
        };
        first * (2 + attempt).min(6) / 2
    }

    fn pause(&self, attempt: u32) -> Duration {
        self.pause * 2_u32.pow(attempt.min(10))
    }
}

/// Asks all questions and gives the answers in their order, with the tokens they took, whatever
/// the order in which they come. An answer is what `accept` makes of the words; what it refuses
/// is asked again. `each` is told of every answer as it comes, and of why there is none.
///
/// Fails only if nobody can be asked; what was answered before that, `each` was told.
pub fn ask(
    provider: &dyn AnswerProvider,
    questions: &[ModelQuestion],
    patience: &AskLimits,
    accept: &(dyn Fn(usize, &str) -> Result<String, String> + Sync),
    each: &mut dyn FnMut(usize, &Result<String, String>),
) -> Result<(Vec<Result<String, String>>, ModelAnswer), AskStop> {
    let run = AskRun {
        provider,
        questions,
        patience,
        accept,
        state: Mutex::default(),
        stop: Condvar::new(),
    };
    run.lock().left.extend(0..questions.len());
    let (sender, answers) = channel();
    let mut all: Vec<Option<Result<String, String>>> = vec![None; questions.len()];
    thread::scope(|scope| {
        for _ in 0..patience.at_once.clamp(1, questions.len().max(1)) {
            let (run, sender) = (&run, sender.clone());
            scope.spawn(move || run.work(&sender));
        }
        drop(sender);
        for (index, answer) in answers {
            each(index, &answer);
            all[index] = Some(answer);
        }
    });
    let state = run.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    match state.stopped {
        Some(stopped) => Err(stopped),
        None => {
            let none = || Err("no request was sent".to_owned());
            let all = all.into_iter().map(|one| one.unwrap_or_else(none));
            Ok((all.collect(), state.spent))
        }
    }
}

struct AskRun<'a> {
    provider: &'a dyn AnswerProvider,
    questions: &'a [ModelQuestion],
    patience: &'a AskLimits,
    accept: &'a (dyn Fn(usize, &str) -> Result<String, String> + Sync),
    state: Mutex<AskRunState>,
    stop: Condvar,
}

#[derive(Default)]
struct AskRunState {
    left: VecDeque<usize>,
    stopped: Option<AskStop>,
    spent: ModelAnswer,
}

impl AskRun<'_> {
    fn lock(&self) -> MutexGuard<'_, AskRunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks one question after the other until none is left.
    fn work(&self, answers: &Sender<(usize, Result<String, String>)>) {
        loop {
            let next = {
                let mut state = self.lock();
                state.left.pop_front().filter(|_| state.stopped.is_none())
            };
            let Some(index) = next else { return };
            let Some(answer) = self.persist(index) else {
                return;
            };
            if answers.send((index, answer)).is_err() {
                return;
            }
        }
    }

    /// Asks one question until it is answered; `None` if nobody need be asked any more.
    fn persist(&self, index: usize) -> Option<Result<String, String>> {
        let question = &self.questions[index];
        let mut last = String::new();
        for attempt in 0..self.patience.attempts.max(1) {
            let timeout = self.patience.timeout(question.tokens, attempt);
            let pause = match self.provider.ask(question, timeout) {
                Ok(said) => {
                    self.count(&said);
                    match (self.accept)(index, &said.text) {
                        Ok(text) => return Some(Ok(text)),
                        Err(why) => last = why,
                    }
                    Duration::ZERO
                }
                Err(AskError::Later { why, after }) => {
                    last = why;
                    after.unwrap_or_else(|| self.patience.pause(attempt))
                }
                Err(AskError::Never(why)) => return Some(Err(why)),
                Err(AskError::Stop(stopped)) => {
                    self.lock().stopped.get_or_insert(stopped);
                    self.stop.notify_all();
                    return None;
                }
            };
            let is_last = attempt + 1 == self.patience.attempts;
            if pause > self.patience.longest {
                return Some(Err(last));
            }
            if !is_last && !self.rest(pause) {
                return None;
            }
        }
        Some(Err(last))
    }

    fn count(&self, said: &ModelAnswer) {
        let mut state = self.lock();
        state.spent.input += said.input;
        state.spent.output += said.output;
    }

    /// Waits; `false` if everything stopped meanwhile.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        while state.stopped.is_none() {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return true;
            };
            let waited = self.stop.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Scripted<F>(F);

    impl<F: Fn(&ModelQuestion, Duration) -> Result<ModelAnswer, AskError> + Sync> AnswerProvider
        for Scripted<F>
    {
        fn ask(
            &self,
            question: &ModelQuestion,
            timeout: Duration,
        ) -> Result<ModelAnswer, AskError> {
            (self.0)(question, timeout)
        }
    }

    fn questions(count: usize) -> Vec<ModelQuestion> {
        let one = |at: usize| ModelQuestion {
            text: at.to_string(),
            tokens: 100,
            limit: 100,
            ..ModelQuestion::default()
        };
        (0..count).map(one).collect()
    }

    fn said(text: impl Into<String>) -> Result<ModelAnswer, AskError> {
        let text = text.into();
        Ok(ModelAnswer {
            text,
            input: 2,
            output: 1,
        })
    }

    fn quick() -> AskLimits {
        AskLimits {
            pause: Duration::from_millis(1),
            ..AskLimits::default()
        }
    }

    fn all(_: usize, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    #[test]
    fn timeouts_grow_with_the_text_and_with_each_attempt_up_to_three_times() {
        let patience = AskLimits::default();
        let seconds = |tokens, attempt| patience.timeout(tokens, attempt).as_secs_f64();
        assert_eq!(
            [999, 1_000, 3_999, 4_000].map(|tokens| seconds(tokens, 0)),
            [20.0, 30.0, 30.0, 90.0]
        );
        assert_eq!(
            [0, 1, 2, 3, 4, 9].map(|attempt| seconds(1_500, attempt)),
            [30.0, 45.0, 60.0, 75.0, 90.0, 90.0]
        );
    }

    #[test]
    fn answers_stand_in_the_order_of_the_questions() {
        let provider = Scripted(|question: &ModelQuestion, _| {
            let at: u64 = question.text.parse().unwrap();
            thread::sleep(Duration::from_millis(20 - 2 * at));
            said(&question.text)
        });
        let mut came = Vec::new();
        let (answers, spent) = ask(&provider, &questions(9), &quick(), &all, &mut |at, _| {
            came.push(at);
        })
        .unwrap();
        let texts: Vec<String> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
        assert_ne!(came, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((spent.input, spent.output), (18, 9));
    }

    #[test]
    fn no_more_questions_than_allowed_are_on_their_way() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let provider = Scripted(|_: &ModelQuestion, _| {
            let here = now.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(here, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            now.fetch_sub(1, Ordering::SeqCst);
            said("x")
        });
        let patience = AskLimits {
            at_once: 3,
            ..quick()
        };
        ask(&provider, &questions(12), &patience, &all, &mut |_, _| ()).unwrap();
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn what_may_work_later_is_asked_four_times_with_growing_timeouts() {
        let waited = Mutex::new(Vec::new());
        let provider = Scripted(|_: &ModelQuestion, timeout: Duration| {
            waited.lock().unwrap().push(timeout.as_secs());
            Err(AskError::Later {
                why: "busy".into(),
                after: None,
            })
        });
        let (answers, _) = ask(&provider, &questions(1), &quick(), &all, &mut |_, _| ()).unwrap();
        assert_eq!(answers, [Err("busy".to_owned())]);
        assert_eq!(*waited.lock().unwrap(), [20, 30, 40, 50]);
    }

    #[test]
    fn an_answer_that_is_not_accepted_is_asked_for_again() {
        let asked = AtomicUsize::new(0);
        let provider = Scripted(|_: &ModelQuestion, _| {
            said(format!("{}", asked.fetch_add(1, Ordering::SeqCst)))
        });
        let accept = |_: usize, text: &str| match text {
            "2" => Ok("two".to_owned()),
            _ => Err("no".to_owned()),
        };
        let (answers, spent) =
            ask(&provider, &questions(1), &quick(), &accept, &mut |_, _| ()).unwrap();
        assert_eq!(answers, [Ok("two".to_owned())]);
        assert_eq!(spent.input, 6);
    }

    #[test]
    fn a_pause_that_is_asked_for_is_kept_and_one_that_is_too_long_is_not() {
        let asked = AtomicUsize::new(0);
        let later = |after| {
            Err(AskError::Later {
                why: "wait".into(),
                after: Some(after),
            })
        };
        let provider =
            Scripted(
                |_: &ModelQuestion, _| match asked.fetch_add(1, Ordering::SeqCst) {
                    0 => later(Duration::from_millis(80)),
                    _ => said("x"),
                },
            );
        let began = Instant::now();
        let (answers, _) = ask(&provider, &questions(1), &quick(), &all, &mut |_, _| ()).unwrap();
        assert_eq!(answers, [Ok("x".to_owned())]);
        assert!(began.elapsed() >= Duration::from_millis(80));
        let provider = Scripted(|_: &ModelQuestion, _| later(Duration::from_secs(3_600)));
        let (answers, _) = ask(&provider, &questions(1), &quick(), &all, &mut |_, _| ()).unwrap();
        assert_eq!(answers, [Err("wait".to_owned())]);
    }

    #[test]
    fn when_nobody_can_be_asked_everything_ends_at_once_but_answers_are_told() {
        let provider = Scripted(|question: &ModelQuestion, _| match question.text.as_str() {
            "0" => said("first"),
            "1" => {
                thread::sleep(Duration::from_millis(30));
                Err(AskError::Stop(AskStop {
                    why: "no key".into(),
                    hint: "set it".into(),
                }))
            }
            // Would wait for a minute.
            _ => Err(AskError::Later {
                why: "busy".into(),
                after: Some(Duration::from_secs(60)),
            }),
        });
        let mut told = Vec::new();
        let began = Instant::now();
        let ended = ask(
            &provider,
            &questions(40),
            &quick(),
            &all,
            &mut |at, answer| {
                told.push((at, answer.clone()));
            },
        );
        assert_eq!(ended.unwrap_err().why, "no key");
        assert_eq!(told, [(0, Ok("first".to_owned()))]);
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn no_questions_have_no_answers() {
        let provider = Scripted(|_: &ModelQuestion, _| said("x"));
        let (answers, spent) = ask(&provider, &[], &quick(), &all, &mut |_, _| ()).unwrap();
        assert_eq!((answers.len(), spent), (0, ModelAnswer::default()));
    }
}
