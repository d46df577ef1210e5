"""An instance of a ring in plain Python, which works on one Secret at a time, in work(). ../README.md has its flags."""
import datetime, json, os, signal, sys, threading, time, types, urllib.error, urllib.parse, urllib.request as web, uuid
my = types.SimpleNamespace(**dict(flag.removeprefix("--").split("=", 1) for flag in sys.argv[1:]))
D, ME, busy, stopping, seen = int(my.seconds), uuid.uuid4().hex, threading.RLock(), threading.Event(), {}
RING, WHO, POD, HOLD = (f"windlass.dev/{word}" for word in ("ring", "incarnation", "pod", "hold-seconds"))
SHARD, DRAIN = (f"{word}.windlass.dev/{my.ring}" for word in ("shard", "drain"))
LEASES = f"apis/coordination.k8s.io/v1/namespaces/{my.namespace}/leases"
MINE = f"api/v1/secrets?labelSelector={urllib.parse.quote(f'{SHARD}={my.id}')}"
def clock(): return time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while the machine sleeps, as the Lease does
def end(code, why): print(why, file=sys.stderr, flush=True); os._exit(code)
def work(meta): print(json.dumps({"worked": meta["name"], "incarnation": ME}), flush=True)
def ask(method, path, body=None, timeout=D / 5):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    head, data = {"Authorization": f"Bearer {my.token}", "Content-Type": kind}, body and json.dumps(body).encode()
    return web.urlopen(web.Request(f"{my.server}/{path}", data, head, method=method), timeout=timeout)
def follow():
    while True:
        try:  # a watch from nowhere begins with all there is; so does the next one, if anything fails
            for event in map(json.loads, ask("GET", f"{MINE}&watch=1&timeoutSeconds=50", timeout=60)):
                if event["type"] in ("ADDED", "MODIFIED"): look(event["object"]["metadata"])
        except (OSError, ValueError) as failed: print(failed, file=sys.stderr); time.sleep(1)
def look(meta):
    with busy:  # an orderly end waits for this
        if clock() >= deadline: end(1, "the Lease was not renewed in time")
        if DRAIN not in meta["labels"]: return work(meta)
        free = {"metadata": {"resourceVersion": meta["resourceVersion"], "labels": {SHARD: None, DRAIN: None}}}
        ask("PATCH", f"api/v1/namespaces/{meta['namespace']}/secrets/{meta['name']}", free, 10)
def read():  # metadata and spec of the Lease; empty if there is none
    try: lease = json.load(ask("GET", f"{LEASES}/{my.id}"))
    except urllib.error.HTTPError as refused:
        if refused.code != 404: raise
        lease = {"metadata": {}, "spec": {}}
    return {"labels": {}, "annotations": {}} | lease["metadata"], lease["spec"]
def write(version, turns, holder=my.id):  # refused unless the Lease is of this version; until when it is ours
    sent, now = clock(), datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": D, "leaseTransitions": turns, "renewTime": now}
    meta = {"name": my.id, "labels": {RING: my.ring}, "annotations": {WHO: ME, POD: None, HOLD: None}}
    lease = {"metadata": meta | {"resourceVersion": version}, "spec": spec}
    ask("PATCH", f"{LEASES}/{my.id}", lease) if version else ask("POST", LEASES, lease)
    return sent + D * 2 / 3
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
while True:  # until nobody has the Lease, or whoever has it has been silent for all of its duration
    meta, spec = read()
    if meta["labels"].get(RING, my.ring) != my.ring: end(2, "the Lease is of another ring")
    who, notes, lasts = spec.get("holderIdentity"), meta["annotations"], spec.get("leaseDurationSeconds", 15)
    silent = clock() - seen.setdefault((who, notes.get(WHO), spec.get("renewTime")), clock())
    if who == my.id and HOLD not in notes and sum(it[1] == notes.get(WHO) for it in seen) > 1: end(2, "our id is taken")
    if not who or silent >= lasts or HOLD in notes or time.sleep(D / 5): break
deadline = write(meta.get("resourceVersion"), spec.get("leaseTransitions", -1) + 1)
# If the Lease is new and objects are ours already, somebody may still believe in one that was deleted.
is_in_doubt = "resourceVersion" not in meta and json.load(ask("GET", f"{MINE}&limit=1"))["items"]
threading.Timer(2 * D if is_in_doubt else 0, follow).start()
while clock() < deadline:
    is_last = stopping.wait(D / 5) and busy.acquire(timeout=D / 5)
    try:  # who finds that the Lease it gave back is not its own has left in order
        meta, spec = read()
        if (spec.get("holderIdentity"), meta["annotations"].get(WHO)) != (my.id, ME): end(not is_last, "not our Lease")
        deadline = write(meta["resourceVersion"], spec["leaseTransitions"], None if is_last else my.id)
    except OSError as failed: print(failed, file=sys.stderr)  # there is time for another try
end(1, "the Lease was not renewed in time")
