//! Whatever the order of deliveries: no node is restored twice, none without record, and
//! repetition changes nothing (I2, I4, I5).

use super::{check_all, life::Order};

#[test]
fn any_order_is_safe() {
    check_all(Order::Permuted);
}
