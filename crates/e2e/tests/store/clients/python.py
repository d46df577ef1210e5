"""Speaks to a store through the package `etcd3` and prints what it was told, without what two
correct stores may say differently: two stores are alike to this client if the words are.

usage: python.py HOST PORT
"""

import sys
import threading
import time

import etcd3
from etcd3 import exceptions

# How long anything may take before it counts as lost.
WAIT_SECONDS = 20
LEASE = 4711
LEASE_SECONDS = 600


def say(what, *told):
    print(what + ":", *told)


def pair(value, meta):
    text = value.decode() if value is not None else None
    return f"{meta.key.decode()}={text} ({meta.create_revision}, {meta.mod_revision}, {meta.version})"


def told(event):
    kind = type(event).__name__
    return f"{kind} {event.key.decode()}={event.value.decode()} at {event.mod_revision}"


def keys(client):
    for number in range(3):
        client.put(f"k/{number}", f"v{number}")
    previous = client.put("k/0", "again", prev_kv=True).prev_kv
    say("put over", previous.value.decode(), previous.version)
    say("get", pair(*client.get("k/0")))
    say("get missing", client.get("nothing")[0])
    for order in ("ascend", "descend"):
        found = client.get_prefix("k/", sort_order=order, sort_target="mod")
        say(order, "; ".join(pair(*each) for each in found))
    say("range", "; ".join(pair(*each) for each in client.get_range("k/0", "k/2")))
    say("replaced", client.replace("k/1", "v1", "new"), client.replace("k/1", "v1", "newer"))
    say("created", client.put_if_not_exists("k/9", "nine"), client.put_if_not_exists("k/9", "ten"))
    say("deleted", client.delete("k/9"), client.delete("k/9"))
    say("deleted all", client.delete_prefix("k/").deleted)


def transactions(client):
    client.put("t/1", "1")
    at = client.transactions
    for version in (1, 7):
        succeeded, answers = client.transaction(
            compare=[at.value("t/1") == "1", at.version("t/1") == version, at.create("t/2") == 0],
            success=[at.put("t/3", "3"), at.get("t/3")],
            failure=[at.get("t/1"), at.delete("t/1")],
        )
        found = [pair(*each) for answer in answers if isinstance(answer, list) for each in answer]
        say("transaction", succeeded, found)
    say("left", "; ".join(pair(*each) for each in client.get_prefix("t/")))


def watches(client):
    events, cancel = client.watch_prefix("w/")
    client.put("w/1", "1")
    client.put("w/2", "2")
    client.delete("w/1")
    seen = [next(events) for _ in range(3)]
    cancel()
    say("watched", "; ".join(told(event) for event in seen))
    first = seen[0].mod_revision
    events, cancel = client.watch_prefix("w/", start_revision=first)
    say("from the past", "; ".join(told(next(events)) for _ in range(3)))
    cancel()
    arrived = threading.Event()
    heard = []

    def hear(response):
        heard.extend(response.events)
        arrived.set()

    watch = client.add_watch_callback("w/3", hear)
    client.put("w/3", "3")
    say("called back", arrived.wait(WAIT_SECONDS), "; ".join(told(event) for event in heard))
    client.cancel_watch(watch)


def leases(client):
    lease = client.lease(LEASE_SECONDS, lease_id=LEASE)
    client.put("leased", "1", lease=lease)
    say("lease", lease.id, lease.granted_ttl, [key.decode() for key in lease.keys])
    say("kept alive", [answer.TTL for answer in lease.refresh()])
    say("plausible", 0 < lease.remaining_ttl <= LEASE_SECONDS)
    lease.revoke()
    say("after revoking", client.get("leased")[0])
    say("left of nothing", client.get_lease_info(LEASE).TTL)
    try:
        client.put("leased", "2", lease=LEASE)
        say("put without a lease", "not refused")
    except Exception as error:  # the package lets gRPC's own errors through
        say("put without a lease", error.code().name, error.details())


def locks(client):
    first, second = client.lock("here", ttl=60), client.lock("here", ttl=60)
    say("first", first.acquire(timeout=WAIT_SECONDS), first.is_acquired())
    say("second meanwhile", second.acquire(timeout=1))
    taken = threading.Event()

    def take():
        if second.acquire(timeout=WAIT_SECONDS):
            taken.set()

    waiting = threading.Thread(target=take)
    waiting.start()
    # The package asks, then watches: what is released between the two it does not see.
    deadline = time.monotonic() + WAIT_SECONDS
    while not client.watcher._callbacks and time.monotonic() < deadline:
        time.sleep(0.01)
    say("released", first.release())
    waiting.join(WAIT_SECONDS)
    say("second then", taken.is_set(), second.is_acquired(), first.is_acquired())
    say("released", second.release())


def upkeep(client):
    status = client.status()
    say("status", status.version, status.leader is not None)
    say("members", len(list(client.members)), "alarms", len(list(client.list_alarms())))
    revision = client.get("t/3")[1].response_header.revision
    client.compact(revision)
    watch, _ = client.watch("t/3", start_revision=1)
    try:
        next(watch)
        say("compacted", "not refused")
    except exceptions.RevisionCompactedError as error:
        say("compacted", error.compacted_revision == revision)
    client.defragment()
    say("hash", client.hash() != 0)


def main(host, port):
    client = etcd3.client(host=host, port=int(port), timeout=WAIT_SECONDS)
    for part in (keys, transactions, watches, leases, locks, upkeep):
        part(client)
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
