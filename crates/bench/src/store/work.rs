//! The work of each row: what is prepared, what its clients do, what is read off afterwards.

mod disturbed;
mod fill;
mod lease;
mod list;
mod mixed;
pub(crate) mod put;
mod txn;
pub(crate) mod watch;

use anyhow::{Context, Result};
use etcd_api::etcdserverpb::{DeleteRangeResponse, PutRequest, PutResponse, RangeRequest};

use super::{
    Scale, answer,
    figures::{Figures, Metric},
    load::{self, Client, Load},
    row::{Row, Work},
    server::Server,
};
use crate::{
    grpc::{Channel, Pool},
    process, shape,
};
pub(crate) use put::Putter;

/// Clients that put objects in place before a row begins.
const PREPARING_CLIENTS: usize = 64;
const PREPARING_CONNECTIONS: usize = 8;

/// A server, and how large the rows on it are.
pub(crate) struct Bench<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) scale: &'a Scale,
    pub(crate) row: &'a Row,
}

/// Measures one row on one server.
pub(crate) async fn measure(mut bench: Bench<'_>) -> Result<Figures> {
    if !bench.server.is_fresh() {
        bench.clear().await?;
    }
    let mut figures = match bench.row.work {
        Work::Put { value_bytes } => put::measure(&bench, value_bytes).await,
        Work::TxnCreate => txn::create(&bench).await,
        Work::TxnUpdate => txn::update(&bench).await,
        Work::Get => list::get(&bench).await,
        Work::List(listing) => list::list(&bench, listing).await,
        Work::Count => list::count(&bench).await,
        Work::Watch { watchers } => watch::measure(&bench, watchers).await,
        Work::LeaseGrant => lease::grant(&bench).await,
        Work::LeaseKeepAlive => lease::keep_alive(&bench).await,
        Work::Mixed => mixed::measure(&bench).await,
        Work::Fill => return fill::measure(&mut bench).await,
        Work::PutWhile(disturbance) => disturbed::measure(&bench, disturbance).await,
    }?;
    bench.weigh(&mut figures)?;
    Ok(figures)
}

// === impl Bench ===

impl Bench<'_> {
    async fn pool(&self) -> Result<Pool> {
        Ok(Pool::open(self.server.address(), self.row.connections).await?)
    }

    /// Runs the row's clients for the row's time.
    async fn load<C: Client>(
        &self,
        pool: &Pool,
        client: impl Fn(usize, Channel) -> C,
    ) -> Result<Load> {
        let clients =
            (0..self.row.clients).map(|index| client(index, pool.channel(index))).collect();
        load::timed(clients, self.scale.span(), self.server.pid()).await
    }

    /// Puts each object `times` times, so that there is something to read and a history.
    async fn put_objects(&self, count: u64, times: u64) -> Result<()> {
        let pool = Pool::open(self.server.address(), PREPARING_CONNECTIONS).await?;
        let walk = put::Walk::objects(count);
        let clients = (0..PREPARING_CLIENTS)
            .map(|index| Putter::in_order(pool.channel(index), walk.clone()))
            .collect();
        load::counted(clients, count * times, None).await.context("cannot put the objects")?;
        Ok(())
    }

    /// Removes what other rows left, on a server that outlives them.
    async fn clear(&self) -> Result<()> {
        let pool = Pool::open(self.server.address(), 1).await?;
        let path = "/etcdserverpb.KV/DeleteRange";
        let _answer: DeleteRangeResponse =
            pool.channel(0).unary(path, &shape::delete_objects()).await?;
        Ok(())
    }

    /// Adds what the server takes now.
    fn weigh(&self, figures: &mut Figures) -> Result<()> {
        if let Some(pid) = self.server.pid() {
            figures.set(Metric::ResidentBytes, process::resident_bytes(pid)? as f64);
        }
        if let Some(folder) = self.server.data_dir() {
            let disk = process::disk_use(&folder)?;
            figures.set(Metric::DiskApparentBytes, disk.apparent_bytes as f64);
            figures.set(Metric::DiskAllocatedBytes, disk.allocated_bytes as f64);
        }
        Ok(())
    }
}

pub(crate) async fn range(channel: &Channel, request: &RangeRequest) -> Result<answer::Range> {
    Ok(channel.unary("/etcdserverpb.KV/Range", request).await?)
}

pub(crate) async fn put(channel: &Channel, request: &PutRequest) -> Result<i64> {
    let answer: PutResponse = channel.unary("/etcdserverpb.KV/Put", request).await?;
    Ok(answer.header.context("a put's answer has no header")?.revision)
}
