use serde_json::json;
use windlass_cli::commands::workflow::input::{has_members, input};

fn read(texts: &[&str], schema: Option<&serde_json::Value>) -> anyhow::Result<Option<String>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    input(&texts, schema).map(|json| json.map(|json| json.get().to_owned()))
}

#[test]
fn input_is_put_together() {
    let input = |texts: &[&str]| read(texts, None);
    assert_eq!(input(&[]).unwrap(), None);
    let both = input(&[r#"{"a": 1, "b": 2}"#, "b=text", "c=[1]", "d=1.2.3", "e=x=y"]).unwrap().unwrap();
    assert_eq!(both, r#"{"a":1,"b":"text","c":[1],"d":"1.2.3","e":"x=y"}"#);
    assert!(input(&["nonsense"]).is_err() && input(&["[1]"]).is_err() && input(&["=x"]).is_err());
    assert!(has_members(&["{}".to_owned(), "a=1".to_owned()]) && !has_members(&["{\"a\": 1}".to_owned()]));
}

#[test]
fn a_value_is_read_as_the_schema_says() {
    let schema = json!({
        "type": "object",
        "$defs": {"release": {"type": "string"}},
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "dry": {"type": "boolean"},
            "list": {"type": "array"},
            "map": {"type": "object"},
            "maybe": {"type": ["null", "string"]},
            "either": {"type": ["number", "string"]},
            "picked": {"enum": ["1", "2", 3]},
            "version": {"$ref": "#/$defs/release"},
            "loop": {"$ref": "#/properties/loop"},
            "open": {},
        },
    });
    let cases = [
        ("text=1.2", r#""1.2""#),
        ("text=true", r#""true""#),
        ("text=", r#""""#),
        ("text={\"a\": 1}", r#""{\"a\": 1}""#),
        (r#"text="quoted""#, r#""quoted""#),
        ("version=1.20", r#""1.20""#),
        ("count=3", "3"),
        ("share=0.5", "0.5"),
        ("dry=false", "false"),
        ("list=[1, 2]", "[1,2]"),
        ("map={\"a\": 1}", r#"{"a":1}"#),
        ("maybe=null", "null"),
        ("maybe=7", r#""7""#),
        ("either=7", "7"),
        ("either=seven", r#""seven""#),
        ("picked=2", r#""2""#),
        ("picked=3", "3"),
        ("loop=3", "3"),
        ("open=3", "3"),
        ("open=x", r#""x""#),
        ("other=3", "3"),
    ];
    for (text, wanted) in cases {
        let name = text.split_once('=').unwrap().0;
        assert_eq!(read(&[text], Some(&schema)).unwrap().unwrap(), format!("{{\"{name}\":{wanted}}}"), "{text}");
    }
    let refused = [
        ("count=many", "count is an integer", "--input count=3"),
        ("count=1.5", "count is an integer", "\"1.5\" is not"),
        ("share=half", "share is a number", "--input share=1.5"),
        ("dry=yes", "dry is a boolean", "--input dry=true"),
        ("list={}", "list is an array", "'list=["),
        ("map=[1]", "map is an object", "'map={"),
    ];
    for (text, rule, next) in refused {
        let error = read(&[text], Some(&schema)).unwrap_err().to_string();
        assert!(error.contains(rule) && error.contains(next), "{text}: {error}");
    }
}
