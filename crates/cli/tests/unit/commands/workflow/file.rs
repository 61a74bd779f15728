use windlass_cli::commands::workflow::file::input;

#[test]
fn input_is_put_together() {
    let input = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        input(&texts).map(|json| json.map(|json| json.get().to_owned()))
    };
    assert_eq!(input(&[]).unwrap(), None);
    let both = input(&[r#"{"a": 1, "b": 2}"#, "b=text", "c=[1]", "d=1.2.3", "e=x=y"]).unwrap().unwrap();
    assert_eq!(both, r#"{"a":1,"b":"text","c":[1],"d":"1.2.3","e":"x=y"}"#);
    assert!(input(&["nonsense"]).is_err() && input(&["[1]"]).is_err() && input(&["=x"]).is_err());
}
