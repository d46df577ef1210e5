//! Transactions: the lines below `txn`, each level two blanks further in.

use etcd_api::etcdserverpb::{
    Compare, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
};

use super::{
    Error, ErrorKind, Line, command,
    word::{Words, enum_number, number},
};

/// How far the lines of a transaction stand in.
const INDENT: &str = "  ";

/// Reads the lines of a transaction, without the line `txn` itself.
pub(super) fn parse(lines: &[Line<'_>]) -> Result<TxnRequest, Error> {
    let mut request = TxnRequest::default();
    let mut rest = lines;
    while let [(line, text), after @ ..] = rest {
        let inner_len =
            after.iter().take_while(|(_, text)| indent(text) > indent(rest[0].1)).count();
        let (inner, next) = after.split_at(inner_len);
        add(&mut request, text, inner).map_err(|failure| match failure {
            Failure::Here(kind) => Error { line: *line, kind },
            Failure::Inside(error) => error,
        })?;
        rest = next;
    }
    Ok(request)
}

enum Failure {
    Here(ErrorKind),
    Inside(Error),
}

// === impl Failure ===

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        Self::Here(kind)
    }
}

/// Adds what one line says; `inner` are the lines of the transaction it opens.
fn add(request: &mut TxnRequest, text: &str, inner: &[Line<'_>]) -> Result<(), Failure> {
    let mut words = Words::of(text)?;
    let clause = words.next_text("`if`, `then` or `else`")?;
    let (clause, times) = repeated(&clause)?;
    if clause == "if" {
        let condition = compare(&mut words)?;
        words.finish()?;
        request.compare.extend(std::iter::repeat_n(condition, times));
        return Ok(());
    }
    let branch = match clause {
        "then" => &mut request.success,
        "else" => &mut request.failure,
        other => return Err(ErrorKind::UnknownName(other.to_owned(), "clause").into()),
    };
    let op = RequestOp { request: operation(&mut words, inner)? };
    words.finish()?;
    branch.extend(std::iter::repeat_n(op, times));
    Ok(())
}

/// `then*3` means the line three times.
fn repeated(clause: &str) -> Result<(&str, usize), ErrorKind> {
    let Some((clause, times)) = clause.split_once('*') else { return Ok((clause, 1)) };
    match times.parse() {
        Ok(times) => Ok((clause, times)),
        Err(_) => Err(ErrorKind::NotANumber(times.to_owned())),
    }
}

fn operation(words: &mut Words, inner: &[Line<'_>]) -> Result<Option<Request>, Failure> {
    let name = words.next_text("operation")?;
    if name != "txn" && !inner.is_empty() {
        return Err(ErrorKind::NotATxn.into());
    }
    Ok(Some(match name.as_str() {
        "put" => Request::RequestPut(command::put(words)?),
        "get" => Request::RequestRange(command::range(words)?),
        "del" => Request::RequestDeleteRange(command::delete_range(words)?),
        "txn" => Request::RequestTxn(parse(inner).map_err(Failure::Inside)?),
        "nothing" => return Ok(None),
        _ => return Err(ErrorKind::NotInTxn(name).into()),
    }))
}

/// `TARGET KEY [END] RELATION WANTED`
fn compare(words: &mut Words) -> Result<Compare, ErrorKind> {
    let by_name = |name: &str| CompareTarget::from_str_name(name).map(|target| target as i32);
    let target = enum_number(&words.next_text("target")?, "target", by_name)?;
    let key = words.next("key")?;
    let range_end = if words.len() > 2 { words.next_or_empty() } else { bytes::Bytes::new() };
    let result = enum_number(&words.next_text("relation")?, "relation", by_sign)?;
    let wanted = words.next("wanted value")?;
    let target_union = match CompareTarget::try_from(target) {
        Ok(CompareTarget::Version) => Some(TargetUnion::Version(number(&wanted)?)),
        Ok(CompareTarget::Create) => Some(TargetUnion::CreateRevision(number(&wanted)?)),
        Ok(CompareTarget::Mod) => Some(TargetUnion::ModRevision(number(&wanted)?)),
        Ok(CompareTarget::Value) => Some(TargetUnion::Value(wanted)),
        Ok(CompareTarget::Lease) => Some(TargetUnion::Lease(number(&wanted)?)),
        Err(_) => None,
    };
    Ok(Compare { result, target, key, range_end, target_union })
}

fn by_sign(sign: &str) -> Option<i32> {
    Some(match sign {
        "=" => CompareResult::Equal as i32,
        "!=" => CompareResult::NotEqual as i32,
        "<" => CompareResult::Less as i32,
        ">" => CompareResult::Greater as i32,
        _ => return None,
    })
}

fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(INDENT).len()
}
