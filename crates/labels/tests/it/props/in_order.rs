//! With repetitions anywhere and any `added` overtaking any `deleted`, the result is the one of
//! handling everything at once and in order. I1 to I5 hold after each step.

use super::{check_all, life::Order};

#[test]
fn late_and_repeated_deliveries_end_where_one_in_order_does() {
    check_all(Order::AddedOvertakes);
}
