"""An instance of a ring, with nothing but Python: it keeps a Lease, watches what carries its id, lets go of what is
draining in one guarded write, and ends when the Lease is lost. It works on one object at a time, in work()."""
import argparse, json, os, signal, ssl, sys, threading, time, uuid
from datetime import datetime, timezone
from urllib import error, parse, request

flags = argparse.ArgumentParser(description=__doc__)
for name, default in dict(server=None, ca=None, token="", cert=None, key=None, ring=None, id=None, namespace="default",
                          resource="api/v1/secrets", prefix="windlass.dev", seconds="15").items():
    flags.add_argument(f"--{name}", default=default, required=name in ("server", "ring", "id"))
my = flags.parse_args()
D, ME, tls = int(my.seconds), uuid.uuid4().hex, ssl.create_default_context(cafile=my.ca)
if my.cert: tls.load_cert_chain(my.cert, my.key)
SHARD, DRAIN = (f"{word}.{my.prefix}/{my.ring}" for word in ("shard", "drain"))
RING, WHO, POD, HOLD = (f"{my.prefix}/{word}" for word in ("ring", "incarnation", "pod", "hold-seconds"))
LEASES, MINE = f"apis/coordination.k8s.io/v1/namespaces/{my.namespace}/leases", f"{SHARD}={my.id}"
clock = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while the machine sleeps, as the Lease does
busy, asked_to_stop, deadline = threading.RLock(), threading.Event(), 0.0

def end(code, why): print(why, file=sys.stderr, flush=True); os._exit(code)

def ask(method, path, body=None, timeout=D / 5, **query):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    head, url = {"Authorization": f"Bearer {my.token}", "Content-Type": kind}, f"{my.server}/{path}?{parse.urlencode(query)}"
    asked = request.Request(url, json.dumps(body).encode() if body else None, head, method=method)
    return request.urlopen(asked, timeout=timeout, context=tls)

def work(thing): print(json.dumps({"worked": thing["metadata"]["name"], "incarnation": ME}), flush=True)

def look(thing):
    meta, (base, plural) = thing["metadata"], my.resource.rsplit("/", 1)
    path = f"{base}/namespaces/{meta['namespace']}/{plural}" if meta.get("namespace") else my.resource
    with busy:  # an orderly end waits for this
        if clock() >= deadline: end(1, "lost: the Lease was not renewed in time")
        if DRAIN not in meta["labels"]: return work(thing)
        free = {"resourceVersion": meta["resourceVersion"], "labels": {SHARD: None, DRAIN: None}}
        ask("PATCH", f"{path}/{meta['name']}", {"metadata": free}, 10)

def follow():
    while True:
        try:  # a watch from nowhere begins with all there is; so does the next one, if anything fails
            for line in ask("GET", my.resource, timeout=60, watch=1, timeoutSeconds=50, labelSelector=MINE):
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"): look(event["object"])
        except (OSError, ValueError) as failed: print(failed, file=sys.stderr); time.sleep(1)

def read():  # the Lease's parts; nothing if there is no Lease
    try: lease = json.load(ask("GET", f"{LEASES}/{my.id}"))
    except error.HTTPError as refused:
        if refused.code == 404: return None
        raise
    return {"labels": {}, "annotations": {}} | lease["metadata"], lease["spec"]

def write(version, turns, holder=my.id):  # refused unless the Lease is as we know it
    global deadline
    sent, now = clock(), datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    meta = {"name": my.id, "resourceVersion": version, "labels": {RING: my.ring}, "annotations": {WHO: ME, POD: None, HOLD: None}}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": D, "leaseTransitions": turns, "renewTime": now}
    ask(*(("PATCH", f"{LEASES}/{my.id}") if version else ("POST", LEASES)), {"metadata": meta, "spec": spec})
    deadline = sent + D * 2 / 3

def join():  # once nobody has the Lease, or whoever has it has been silent for all of its duration
    before, since = None, clock()
    while found := read():
        meta, spec = found
        if meta["labels"].get(RING, my.ring) != my.ring: end(2, "the Lease is of another ring")
        holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
        if (holder, renewed) != before: before, since = (holder, renewed), clock()
        if not holder or meta["annotations"].get(HOLD) or clock() - since >= spec.get("leaseDurationSeconds", 15):
            return write(meta["resourceVersion"], spec.get("leaseTransitions", 0) + 1) or 0
        time.sleep(D / 5)
    write(None, 0)  # if objects are ours already, somebody may still believe in a Lease that was deleted
    return 2 * D if json.load(ask("GET", my.resource, labelSelector=MINE, limit=1))["items"] else 0

signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.set())
threading.Timer(join(), follow).start()
while clock() < deadline:
    is_last = asked_to_stop.wait(D / 5) and busy.acquire(timeout=D / 5)
    try:
        meta, spec = read() or end(1, "lost: the Lease is gone")
        if spec.get("holderIdentity") != my.id or meta["annotations"].get(WHO) != ME: end(1, "lost: the Lease is another's")
        write(meta["resourceVersion"], spec["leaseTransitions"], None if is_last else my.id)
        if is_last: end(0, "left")
    except OSError as failed: print(failed, file=sys.stderr)  # there is time for another try
end(1, "lost: the Lease was not renewed in time")
