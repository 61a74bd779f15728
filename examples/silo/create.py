#!/usr/bin/env python3
"""A stand-in for Headless Create: reads a design, rebuilds its features, leaves a result, a graph, a STEP-like file.

A runner calls it as it would call the real one:   create.py --console -m silo.runner validate|export|dag-extract|thumbnail
People may call it to see a design's graph:        create.py --graph design.json

A design is JSON: sketches with their parameters, and features that stand on sketches or on each other. "seconds" is how long
rebuilding one feature takes. Needs nothing but Python 3.8 or newer.
"""
import hashlib, json, os, sys, time

DESIGN = "design.json"


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def load(path):
    with open(path) as file:
        design = json.load(file)
    known = set(design["sketches"])
    for feature in design.get("features", []):
        missing = [key for key in feature["on"] if key not in known]
        if missing:
            sys.exit(f"{feature['key']} stands on {', '.join(missing)}, which is not there before it")
        known.add(feature["key"])
    return design


def graph(design):
    """What depends on what; a node's hash covers its own parameters and nothing else."""
    nodes = [{"node_key": key, "node_type": "sketch", "properties_hash": digest(sketch)}
             for key, sketch in design["sketches"].items()]
    edges = []
    for feature in design.get("features", []):
        own = {name: value for name, value in feature.items() if name not in ("key", "on")}
        nodes.append({"node_key": feature["key"], "node_type": feature["type"], "properties_hash": digest(own)})
        edges += [{"source_key": source, "target_key": feature["key"]} for source in feature["on"]]
    return {"nodes": nodes, "edges": edges}


def geometry(design, key, done):
    """What a node comes to: its parameters and what it stands on. The real program would make a solid of it."""
    if key not in done:
        feature = next((one for one in design.get("features", []) if one["key"] == key), None)
        own = {name: value for name, value in feature.items() if name != "on"} if feature else design["sketches"][key]
        done[key] = digest([own, [geometry(design, source, done) for source in (feature or {"on": []})["on"]]])
    return done[key]


def rebuild(design, keys):
    for number, key in enumerate(keys):
        print(f"::progress {100 * number // max(len(keys), 1)} Rebuilding {key}", flush=True)
        time.sleep(design.get("seconds", 0))
        print(f"rebuilt {key}", flush=True)


def validate(design, job):
    whole = graph(design)
    keys = [node["node_key"] for node in whole["nodes"]]
    # The server says which nodes are not clean, sources first. Without any it is the first time, and all are rebuilt.
    asked = [node["node_key"] for node in (job.get("dirty") or {}).get("nodes", []) if node["node_key"] in keys]
    rebuilt = asked or keys
    rebuild(design, rebuilt)
    done = {}
    for node in whole["nodes"]:
        node["output_hash"] = geometry(design, node["node_key"], done)
    write(os.environ["SILO_DAG_FILE"], whole)
    print(f"::log info {len(rebuilt)} of {len(keys)} nodes were rebuilt")
    return {"summary": f"{len(rebuilt)} of {len(keys)} nodes rebuilt, all valid", "rebuilt": rebuilt}


def export(design, job):
    wanted = job["job"]["args"].get("format", "step")
    if wanted != "step":
        sys.exit(f"this stand-in exports step, not {wanted}")
    rebuild(design, list(design["sketches"]))
    done, lines = {}, []
    for number, node in enumerate(graph(design)["nodes"], 1):
        lines.append(f"#{number}=SHAPE('{node['node_key']}','{geometry(design, node['node_key'], done)}');\n")
    target = os.environ.get("SILO_OUTPUT_FILE", "out.step")
    with open(target, "w") as file:
        file.write("ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION(('stand-in'),'2;1');\nENDSEC;\nDATA;\n")
        file.writelines(lines)
        file.write("ENDSEC;\nEND-ISO-10303-21;\n")
    return {"summary": f"{len(lines)} shapes exported", "shapes": len(lines)}


def dag_extract(design, job):
    whole = graph(design)
    write(os.environ["SILO_DAG_FILE"], whole)
    return {"summary": f"{len(whole['nodes'])} nodes, {len(whole['edges'])} edges"}


def thumbnail(design, job):
    target = os.environ.get("SILO_OUTPUT_FILE", "thumbnail.pgm")
    with open(target, "wb") as file:
        file.write(b"P5 16 16 255 " + hashlib.sha256(digest(design).encode()).digest() * 8)
    return {"summary": "16 by 16 pixels"}


def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


def main():
    if sys.argv[1:2] == ["--graph"]:
        json.dump(graph(load(sys.argv[2])), sys.stdout)
        return
    commands = {"validate": validate, "export": export, "dag-extract": dag_extract, "thumbnail": thumbnail}
    with open(os.environ["SILO_JOB_FILE"]) as file:
        job = json.load(file)
    if not os.path.exists(DESIGN):
        sys.exit(f"the revision has no {DESIGN}")
    result = commands[sys.argv[-1]](load(DESIGN), job)
    print("::progress 100 done")
    write(os.environ["SILO_RESULT_FILE"], result)


if __name__ == "__main__":
    main()
