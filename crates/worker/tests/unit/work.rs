use clap::Parser;
use windlass_worker::{args::Cli, work::environment};

#[test]
fn jobs_get_little_of_the_environment_and_no_token() {
    let own = || {
        let names = ["PATH", "LC_ALL", "AWS_SECRET", "WINDLASS_TOKEN", "WINDLASS_SERVER"];
        names.into_iter().map(|name| (name.into(), "x".into()))
    };
    let names = |flags: &[&str]| {
        let args = Cli::try_parse_from([&["w"], flags].concat()).unwrap().args;
        let env = environment(&args, Some("t"), own()).into_iter();
        env.map(|(name, _)| name.into_string().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&[]), "PATH LC_ALL");
    assert_eq!(names(&["--pass-env", "AWS_SECRET", "--pass-env", "WINDLASS_TOKEN"]), "PATH LC_ALL AWS_SECRET");
    assert_eq!(names(&["--pass-env", "*"]), "PATH LC_ALL AWS_SECRET");
    assert_eq!(names(&["--pass-token"]), "PATH LC_ALL WINDLASS_TOKEN");
}
