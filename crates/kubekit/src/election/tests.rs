use std::time::Duration;

use super::*;

fn handle() -> (watch::Sender<Standing>, Handle) {
    let (sender, standing) = watch::channel(Standing::Standby { leader: None });
    (sender, Handle { standing })
}

fn leading(term: u64, seconds: u64) -> Standing {
    Standing::Leading { term: Term(term), until: Instant::now() + Duration::from_secs(seconds) }
}

#[tokio::test(start_paused = true)]
async fn leading_ends_by_the_clock_alone() {
    let (sender, mut handle) = handle();
    assert!(!handle.is_leading());
    sender.send_replace(leading(3, 10));
    assert_eq!(handle.elected().await, Some(Term(3)));
    let elected = Instant::now();
    handle.lost(Term(3)).await;
    assert_eq!(elected.elapsed(), Duration::from_secs(10));
    assert!(!handle.is_leading());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_prolongs_and_another_term_does_not() {
    let (sender, mut handle) = handle();
    sender.send_replace(leading(3, 10));
    let elected = Instant::now();
    let renewing = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        sender.send_replace(leading(3, 10));
        tokio::time::sleep(Duration::from_secs(8)).await;
        sender.send_replace(leading(5, 10));
    };
    tokio::join!(handle.lost(Term(3)), renewing);
    assert_eq!(elected.elapsed(), Duration::from_secs(13));
    assert!(handle.is_leading());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_election_ends_the_wait() {
    let (sender, mut handle) = handle();
    drop(sender);
    assert_eq!(handle.elected().await, None);
}
