import { call, post, type Schedule, segment } from "../api/client";
import { anyChanged } from "../api/live";
import { Ago, Does } from "../parts/basics";
import { useMay } from "../parts/gate";
import { Pages } from "../parts/pages";
import { brief, length, local } from "../parts/text";

const rule = ({ schedule }: Schedule) =>
  schedule.cron ? `${schedule.cron}${schedule.time_zone ? ` (${schedule.time_zone})` : ""}` : `every ${length(schedule.every_ms ?? 0)}`;

export function Schedules() {
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
        empty="There are no schedules here. Create one: windlass schedule put NAME --cron '0 2 * * *' …"
        columns={[
          { name: "Name", cell: (one) => <>{brief(one.name, 80)} {one.schedule.paused && <span className="tag">paused</span>}</> },
          { name: "When", cell: (one) => <code>{rule(one)}</code> },
          { name: "Next (local time)", cell: (one) => <Next times={one.next} /> },
          { name: "Job", cell: (one) => brief(one.schedule.job.definition ?? one.schedule.job.name ?? JSON.stringify(one.schedule.job.payload) ?? "", 80), opt: true },
          { name: "Fired", cell: (one) => one.fired, opt: true },
          { name: "", cell: (one) => edit && <Pause schedule={one} /> },
        ]}
      />
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
      <Does act={() => post("jobs", schedule.schedule.job)} said="A job was submitted.">
        Run now
      </Does>
    </div>
  );
}
