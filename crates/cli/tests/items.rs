//! Items and graphs from the command line, and their import: the real program against a real server.

use crate::support::{ADMIN, Server, WORKER};
use serde_json::{Value, json};

fn write(server: &Server, name: &str, text: &str) {
    std::fs::write(server.home.path().join(name), text).unwrap();
}

#[test]
fn items_are_made_revised_and_shown() {
    let server = Server::start();
    server.windlass(&["item", "list"]).says(&["No items. Make one"]);
    server.windlass(&["item", "create", "ASM-1", "--type", "assembly", "-d", "Gearbox", "--property", "mass=2.5"]).ok();
    let numbered = server.json(&["item", "create", "--category", "F01"]);
    assert_eq!(numbered["part_number"], "F01-0001");
    server.windlass(&["item", "list"]).says(&["PART NUMBER", "ASM-1", "Gearbox", "F01-0001"]);
    let found = server.json(&["item", "list", "--type", "assembly", "--search", "gear"]);
    assert_eq!((found.as_array().unwrap().len(), &found[0]["properties"]["mass"]), (1, &json!(2.5)));
    server.windlass(&["item", "revise", "ASM-1", "-m", "new housing"]).says(&["ASM-1 is at revision 2"]);
    server.windlass(&["item", "show", "ASM-1"]).says(&[
        "Gearbox",
        "mass=2.5",
        "Revision 2",
        "new housing",
        "Revision 1",
    ]);
    let twice = server.windlass(&["item", "create", "ASM-1"]);
    assert_eq!(twice.code, 1);
    twice.says(&["exists already"]);
    assert_eq!(server.windlass(&["item", "create"]).code, 2, "neither a part number nor a category");
}

#[test]
fn an_import_is_checked_as_a_whole_and_can_be_run_again() {
    let server = Server::start();
    write(
        &server,
        "items.csv",
        "part_number,item_type,description,projects,properties.mass\nCAR,assembly,\"A car, red\",P1,\nAXLE,,,,12\nWHEEL,,,,\nBOLT,,,,\n",
    );
    write(&server, "projects.csv", "code,name\nP1,First\n");
    write(
        &server,
        "bom.csv",
        "parent_part_number,child_part_number,quantity,unit\nCAR,AXLE,2,\nAXLE,WHEEL,2,\nWHEEL,BOLT,5,pc\n",
    );
    let history = json!({"revisions": [
        {"part_number": "CAR", "revision_number": 3, "comment": "third"},
        {"part_number": "CAR", "revision_number": 2, "comment": "second"}]});
    write(&server, "history.json", &history.to_string());
    let files = ["import", "silo", "items.csv", "bom.csv", "history.json", "projects.csv"];

    let checked = server.windlass(&[&files[..], &["--check"]].concat()).ok();
    assert!(
        checked.contains("4 items, 2 revisions, 3 BOM rows, 1 project: all valid; nothing was written"),
        "{checked}"
    );
    assert_eq!(server.json(&["item", "list", "-n", "silo"]), json!([]));
    let first = server.json(&files);
    let made = |created: usize, unchanged: usize| json!({"created": created, "updated": 0, "unchanged": unchanged});
    assert_eq!((&first["items"], &first["revisions"], &first["bom"]), (&made(4, 0), &made(2, 0), &made(3, 0)));
    let car = server.json(&["item", "show", "CAR", "-n", "silo"]);
    assert_eq!(
        (&car["revision"], &car["projects"], &car["description"]),
        (&json!(3), &json!(["P1"]), &json!("A car, red"))
    );
    assert_eq!(
        server.json(&["item", "bom", "CAR", "--leaves", "-n", "silo"]),
        json!([{"part_number": "BOLT", "quantity": 20.0}])
    );
    let tree = server.windlass(&["item", "bom", "CAR", "--tree", "-n", "silo"]).ok();
    assert_eq!(tree, "CAR\n  AXLE  x 2\n    WHEEL  x 2\n      BOLT  x 5 pc\n");
    server.windlass(&["item", "where-used", "WHEEL", "-n", "silo"]).says(&["AXLE", "component"]);
    server.windlass(&["item", "show", "CAR", "-n", "silo"]).says(&["third", "second"]);

    let again = server.json(&files);
    assert_eq!((&again["items"], &again["revisions"], &again["bom"]), (&made(0, 4), &made(0, 2), &made(0, 3)));
    write(&server, "items.csv", "part_number,description\nCAR,blue\nNEW,\n");
    let changed = server.windlass(&["import", "silo", "items.csv"]).ok();
    assert!(changed.contains("items      1 created, 1 updated, 0 unchanged"), "{changed}");
    assert_eq!(
        server.json(&["item", "show", "CAR", "-n", "silo"])["projects"],
        json!(["P1"]),
        "what the file does not say stays"
    );
}

#[test]
fn mistakes_are_told_with_file_line_and_field_and_nothing_is_written() {
    let server = Server::start();
    write(&server, "items.csv", "part_number,item_type,projects\nA,part,\nB,Part,\nA,part,\nC,part,NONE\n");
    write(&server, "bom.csv", "parent_part_number,child_part_number,quantity\nA,X,1\nA,C,0\nC,A,1\nA,C,1\n");
    write(
        &server,
        "r.json",
        "[\n {\"part_number\": \"A\", \"revision_number\": 3},\n {\"part_number\": \"A\", \"colour\": 1}]",
    );
    let ran = server.windlass(&["import", "silo", "items.csv", "bom.csv", "r.json"]);
    assert_eq!(ran.code, 1);
    ran.says(&[
        "items.csv:3:3: item_type: \"Part\" is no item type",
        "items.csv:4:1: part_number: A is there twice; first at items.csv:2",
        "items.csv:5:1: projects: there is no project NONE",
        "bom.csv:2:1: child_part_number: there is no item X",
        "bom.csv:3:5: quantity: must be more than 0",
        "in a circle: ",
        "r.json:2:2: revision_number: revision 3 of A does not follow: 2 is missing",
        "r.json:3:33: colour: unknown",
        "nothing was written",
    ]);
    assert_eq!(server.json(&["item", "list", "-n", "silo"]), json!([]));
    let none = server.windlass(&["import", "silo", "none.csv"]);
    assert_eq!(none.code, 1);
    none.says(&["none.csv cannot be read"]);
    server.windlass(&["import", "silo", "items.xml"]).says(&["items.xml"]);
    assert_eq!(server.windlass(&["import"]).code, 2, "without a file there is nothing to import");
    server.windlass(&["import", "silo", "--help"]).says(&["Example", "parent_part_number"]);
}

#[test]
fn graphs_are_drawn() {
    let server = Server::start();
    for part in ["P", "TOP"] {
        server.windlass(&["item", "create", part, "-n", "silo"]).ok();
    }
    let node = |key: &str, hash: &str| json!({"node_key": key, "node_type": "pad", "properties_hash": hash});
    let put = |part: &str, body: Value| {
        let mut command = std::process::Command::new("curl");
        command.args(["-sf", "-X", "PUT", "-H", &format!("Authorization: Bearer {}", crate::support::ADMIN)]);
        command.args(["-H", "Content-Type: application/json", "-d"]);
        command.arg(body.to_string()).arg(format!("{}/api/items/{part}/dag", server.url));
        let ran = crate::support::run(command, "");
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    };
    let graph = |hash: &str| {
        json!({"nodes": [node("sketch", hash), node("pad", "1"), node("hole", "1")],
            "edges": [{"source_key": "sketch", "target_key": "pad"}, {"source_key": "sketch", "target_key": "hole"},
                {"source_key": "hole", "target_key": "pad"}]})
    };
    server.windlass(&["graph", "show", "P", "-n", "silo"]).says(&["P has no graph at revision 1."]);
    put("P", graph("1"));
    let cross = json!([{"source_part_number": "P", "source_key": "pad", "target_key": "mate"}]);
    put("TOP", json!({"nodes": [node("mate", "1")], "cross_edges": cross}));
    put("P", graph("2"));
    let shown = server.windlass(&["graph", "show", "P", "-n", "silo"]).ok();
    let expected = "P revision 1, 3 nodes\n  ○ sketch  pad dirty\n    ○ hole  pad dirty\n      ○ pad  pad dirty\n    ○ pad  pad dirty\n";
    assert_eq!(shown, expected);
    server.windlass(&["graph", "cone", "P", "hole", "-n", "silo"]).says(&[
        "○ pad",
        "In other items:",
        "TOP/mate  dirty, 2 edges away",
    ]);
    let back = server.json(&["graph", "cone", "TOP", "mate", "--backward", "-n", "silo"]);
    assert_eq!(back["elsewhere"].as_array().unwrap().len(), 3);
    server.windlass(&["graph", "dirty", "P", "-n", "silo"]).says(&["NODE", "sketch"]);
    server.windlass(&["graph", "dirty", "P", "--state", "failed", "-n", "silo"]).says(&["Everything is clean."]);
    server.windlass(&["graph", "show", "TOP", "-n", "silo"]).says(&["mate <- P/pad"]);
    let dot = server.windlass(&["graph", "show", "P", "--as", "dot", "-n", "silo"]).ok();
    assert!(dot.starts_with("digraph features {") && dot.contains("\"sketch\" -> \"pad\";"), "{dot}");
    let near = server.json(&["graph", "show", "P", "hole", "-n", "silo"]);
    assert_eq!(near["edges"].as_array().unwrap().len(), 2);
    let missing = server.windlass(&["graph", "show", "P", "none", "-n", "silo"]);
    assert_eq!(missing.code, 1);
    missing.says(&["has no node"]);
}

#[test]
fn entities_of_neops_are_imported_as_a_whole_and_again_without_harm() {
    let server = Server::start();
    let all = json!({"devices": [{"id": 1, "hostname": "sw1", "password": "pw"}, {"id": 2}],
        "interfaces": [{"id": 7, "name": "e0", "device": {"id": 1}}], "deviceGroups": [{"id": 3, "name": "g"}]});
    write(&server, "all.json", &all.to_string());
    let bad = json!({"devices": [{"hostname": "x"}, {"id": 1, "hostname": 5}, {"id": 4}, {"id": 4}], "planets": []});
    write(&server, "bad.json", &bad.to_string());
    let refused = server.windlass(&["import", "neops", "all.json", "bad.json"]);
    assert_eq!(refused.code, 1);
    refused.says(&[
        "bad.json: devices[0].id must be a whole number",
        "bad.json: devices[1].hostname must be a string",
        "device 4 is there twice",
        "planets: unknown",
        "nothing was written",
    ]);
    server.windlass(&["import", "neops", "all.json", "--check"]).says(&["4 entities: all valid"]);
    let first = server.json(&["import", "neops", "all.json"]);
    assert_eq!(
        first,
        json!({"created": 4, "updated": 0, "unchanged": 0}),
        "neither the check nor the refusal wrote any"
    );
    write(&server, "some.json", &json!({"devices": [{"id": 1, "hostname": "sw9"}]}).to_string());
    assert_eq!(server.json(&["import", "neops", "all.json"]), json!({"created": 0, "updated": 0, "unchanged": 4}));
    assert_eq!(server.json(&["import", "neops", "some.json"]), json!({"created": 0, "updated": 1, "unchanged": 0}));
}

#[test]
fn the_doctor_says_what_jobs_of_neops_wait_for() {
    let server = Server::start();
    let unused = server.windlass(&["doctor"]);
    assert!(!unused.out.contains("neops"), "the protocol is not used: {}", unused.out);
    let block = json!({"name": "look", "package": "fb", "majorVersion": 1, "minorVersion": 0, "patchVersion": 0,
        "description": "", "fbType": "check", "runOn": "global", "isPure": true, "parameterJsonSchema": {"type": "object"},
        "resultDataJsonSchema": {"type": "object"}});
    let step = json!({"type": "functionBlock", "label": "a", "functionBlock": "fb/look:1"});
    let workflow = json!({"type": "workflow", "label": "w", "name": "w", "package": "wf", "majorVersion": 1,
        "minorVersion": 0, "patchVersion": 0, "seedEntity": "global", "steps": [step]});
    let run = json!({"workflow": "wf/w:1", "executeOnParameters": {}, "parameters": {}});
    for (token, path, body) in [
        (WORKER, "/function-blocks/register", block),
        (ADMIN, "/workflow-definition/publish", json!({"workflow": workflow})),
        (ADMIN, "/workflow-execution", run),
    ] {
        server.post(token, path, &body);
    }
    server.windlass(&["doctor"]).says(&[
        "neops: waiting",
        "1 job waits for fb/look:1.0.0, which 0 online workers serve",
        "Start neops_worker with the function block fb/look:1.0.0 in its DIR_FUNCTION_BLOCKS",
    ]);
}
