import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { call, get, post, type Schedule, segment, toJson } from "../api/client";
import { anyChanged } from "../api/live";
import { Ago, Card, Does, Empty, Fault, Facts, JobLink, State, Took } from "../parts/basics";
import { useMay } from "../parts/gate";
import { Json } from "../parts/json";
import { Pages } from "../parts/pages";
import { brief, length, local } from "../parts/text";
import { useTitle } from "../parts/title";

const rule = ({ schedule }: Schedule) =>
  schedule.cron ? `${schedule.cron}${schedule.time_zone ? ` (${schedule.time_zone})` : ""}` : `every ${length(schedule.every_ms ?? 0)}`;

export function Schedules() {
  useTitle("Schedules");
  const { edit } = useMay();
  return (
    <>
      <header className="page-head">
        <h1>Schedules</h1>
      </header>
      <Pages<Schedule>
        path="schedules"
        label="Schedules"
        meta={anyChanged}
        id={(one) => one.name}
        empty="There are no schedules here. Create one: windlass schedules set NAME --cron '0 2 * * *' --shell 'make report'"
        columns={[
          { name: "Name", cell: (one) => <><Link to="/schedules/$name" params={{ name: one.name }}>{brief(one.name, 80)}</Link> {one.schedule.paused && <span className="tag">paused</span>}</> },
          { name: "When", cell: (one) => <code>{rule(one)}</code> },
          { name: "Next (local time)", cell: (one) => <Next times={one.next} /> },
          { name: "Job", cell: (one) => brief(one.schedule.job.definition ?? one.schedule.job.name ?? toJson(one.schedule.job.payload) ?? "", 80), opt: true },
          { name: "Fired", cell: (one) => one.fired, opt: true },
          { name: "", cell: (one) => edit && <Pause schedule={one} /> },
        ]}
      />
    </>
  );
}

export function SchedulePage() {
  const { name } = useParams({ from: "/schedules/$name" });
  const { edit } = useMay();
  const found = useQuery({ queryKey: ["schedule", name], queryFn: () => get<Schedule>(`schedules/${segment(name)}`), meta: anyChanged });
  const one = found.data;
  useTitle(name, one?.schedule.paused ? "paused" : "");
  if (!one) return found.error ? <Fault error={found.error} /> : <p className="empty">Loading…</p>;
  return (
    <>
      <header className="page-head">
        <h1>{brief(name, 100)}</h1>
        {one.schedule.paused && <span className="tag">paused</span>}
        <span className="grow" />
        {edit && <Pause schedule={one} />}
      </header>
      <Fault error={found.error} />
      <Facts of={[["When", <code>{rule(one)}</code>], ["Created jobs", one.fired.toLocaleString()]]} />
      <div className="columns">
        <Card title="Next, in local time">
          {one.next.length === 0 && <Empty>{one.schedule.paused ? "It is paused." : "Its time never comes."}</Empty>}
          <ul className="plain-list">{one.next.map((time) => <li key={time}>{local(time)} <span className="quiet"><Ago time={time} /></span></li>)}</ul>
        </Card>
        <Card title="History">
          {!one.recent?.length && <Empty>It has created no job yet.</Empty>}
          <ul className="plain-list">
            {one.recent?.map((firing) => (
              <li key={firing.job}>
                {firing.state ? <State of={firing.state} /> : <span className="quiet">no longer kept</span>} <JobLink id={firing.job} /> {local(firing.at)}{" "}
                {firing.finished_at && <span className="quiet">ended after <Took from={firing.at} to={firing.finished_at} /></span>}
              </li>
            ))}
          </ul>
        </Card>
      </div>
      <Card title="The job it creates"><Json name="Job" value={one.schedule.job} /></Card>
    </>
  );
}

function Next({ times }: { times: string[] }) {
  if (times.length === 0) return <span className="quiet">–</span>;
  return (
    <span title={times.map(local).join("\n")}>
      {local(times[0])} <span className="quiet">(<Ago time={times[0]} />)</span>
    </span>
  );
}

function Pause({ schedule }: { schedule: Schedule }) {
  const { paused } = schedule.schedule;
  const put = () => call("PUT", `schedules/${segment(schedule.name)}`, { body: { ...schedule.schedule, paused: !paused } });
  return (
    <div className="row">
      <Does act={put} said={paused ? "The schedule goes on." : "The schedule is paused."}>
        {paused ? "Resume" : "Pause"}
      </Does>
      <Does act={() => post(`schedules/${segment(schedule.name)}/run`)} said="A job was submitted.">
        Run now
      </Does>
    </div>
  );
}
