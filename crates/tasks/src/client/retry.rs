//! When a call is made again: only if nobody answered, and only so often.

use std::time::Duration;

use crate::service::refusal::{Kind, Refusal};

/// With the pauses between them about a second and a half: a node that restarts is back by then.
pub(super) const TRIES_MAX: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Calls until there is an answer, or until the tries are used up.
pub(super) async fn until_answered<T>(
    call: impl AsyncFn() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let mut tried = 0;
    loop {
        tried += 1;
        match call().await {
            Err(refusal) if refusal.kind == Kind::Unavailable && tried < TRIES_MAX => {
                tokio::time::sleep(pause(tried)).await;
            }
            answered => return answered,
        }
    }
}

/// Doubled each time.
pub(super) fn pause(tried: u32) -> Duration {
    FIRST_PAUSE * 2_u32.saturating_pow(tried.saturating_sub(1).min(TRIES_MAX))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    async fn calls(answers: &[Result<(), Kind>]) -> (u32, Result<(), Kind>) {
        let made = Cell::new(0);
        let answered = until_answered(async || {
            let number = made.replace(made.get() + 1);
            answers[number as usize].map_err(|kind| Refusal::new(kind, ""))
        });
        let answered = answered.await;
        (made.get(), answered.map_err(|refusal| refusal.kind))
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_nobody_answered_is_asked_again() {
        let lost = Err(Kind::Unavailable);
        assert_eq!(calls(&[Ok(())]).await, (1, Ok(())));
        assert_eq!(calls(&[lost, lost, Ok(())]).await, (3, Ok(())));
        assert_eq!(calls(&[lost, Err(Kind::NotFound)]).await, (2, Err(Kind::NotFound)));
        assert_eq!(calls(&[Err(Kind::Aborted)]).await, (1, Err(Kind::Aborted)));
        assert_eq!(calls(&[lost; TRIES_MAX as usize]).await, (TRIES_MAX, lost));
    }

    #[test]
    fn pauses_double() {
        let pauses: Vec<u128> = (1..5).map(|tried| pause(tried).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800]);
    }
}
