// A form from a JSON Schema, for the schemas people write for payloads. What it cannot draw is edited as JSON. The rule of what it
// sends is in payload.ts.
import { createContext, useContext, useId, useRef, useState } from "react";
import { toJson } from "../api/client";
import { drawable, fits, initial, missing, type Read, readJson, readList, readNumber, type Schema } from "./payload";

export type { Schema };
type Faults = Record<string, string>;

/** A payload while it is edited. `read` gives what is displayed, or shows what is wrong and gives nothing. */
export function usePayload(schema: Schema | undefined, given: unknown) {
  const [value, setValue] = useState(() => given ?? (drawable(schema) ? initial(schema!) : {}));
  const canDraw = drawable(schema);
  const [raw, setRaw] = useState(() => !canDraw || !fits(schema!, value));
  const [faults, setFaults] = useState<Faults>({});
  const place = useRef<HTMLDivElement>(null);
  const setFault = (path: string, fault?: string) =>
    setFaults(({ [path]: _, ...others }) => (fault === undefined ? others : { ...others, [path]: fault }));
  const read = (): { payload: unknown } | undefined => {
    const found = { ...faults };
    if (!raw) missing(schema!, value, true, "", found);
    setFaults(found);
    if (Object.keys(found).length === 0) return { payload: value };
    setTimeout(() => place.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  return { schema, canDraw, value, setValue, raw, setRaw, faults, setFault, setFaults, place, read };
}

type Draft = ReturnType<typeof usePayload>;
const FaultsContext = createContext<Pick<Draft, "faults" | "setFault">>({ faults: {}, setFault: () => {} });

export function SchemaForm({ draft }: { draft: Draft }) {
  const { schema, canDraw, value, setValue, raw, setRaw, faults, setFault, setFaults, place } = draft;
  const change = () => {
    setFaults({});
    setRaw(!raw);
  };
  // Nothing is left out of sight, and nothing that was typed is lost.
  const why = Object.keys(faults).length > 0 && raw ? "Correct the JSON first." : raw && canDraw && !fits(schema!, value) ? "The form cannot show all of this payload." : "";
  return (
    <FaultsContext value={{ faults, setFault }}>
      <div className="form" ref={place}>
        {canDraw && (
          <div className="row wrap">
            <button className="small" onClick={change} disabled={why !== ""}>
              {raw ? "Edit as a form" : "Edit as JSON"}
            </button>
            {why && <span className="quiet">{why}</span>}
          </div>
        )}
        {!canDraw && schema && <p className="note">This schema says more than a form can show, so the payload is edited as JSON.</p>}
        {raw ? <RawJson value={value} set={setValue} /> : <Input schema={schema!} value={value} set={setValue} name="" path="" required />}
      </div>
    </FaultsContext>
  );
}

/** A text field that keeps what was typed: either it is the value, or what is wrong with it stands beside it. */
function useText(path: string, given: string, read: (text: string) => Read, set: (value: unknown) => void) {
  const { setFault } = useContext(FaultsContext);
  const [text, setText] = useState(given);
  const change = (next: string) => {
    setText(next);
    const found = read(next);
    setFault(path, found.fault);
    if (found.fault === undefined) set(found.value);
  };
  return [text, change] as const;
}

function useFault(path: string, id: string) {
  const { faults } = useContext(FaultsContext);
  const fault = faults[path];
  const shown = (
    <p role="alert" className="bad-text" id={`${id}-fault`}>
      {fault}
    </p>
  );
  return { shown, marks: fault === undefined ? {} : { "aria-invalid": true, "aria-describedby": `${id}-fault` } };
}

function RawJson({ value, set }: { value: unknown; set: (value: unknown) => void }) {
  const id = useId();
  const [text, change] = useText("", toJson(value, 2), readJson, set);
  const { shown, marks } = useFault("", id);
  return (
    <>
      <label htmlFor={id}>Payload as JSON</label>
      <textarea id={id} rows={10} spellCheck={false} value={text} onChange={(event) => change(event.target.value)} {...marks} />
      {shown}
    </>
  );
}

type Field = { schema: Schema; value: unknown; set: (value: unknown) => void; name: string; path: string; required: boolean };

function Input(field: Field) {
  const { schema, value, set, name, path, required } = field;
  const id = useId();
  const { shown, marks } = useFault(path, id);
  if (schema.type === "object") {
    const members = (value ?? {}) as Record<string, unknown>;
    const change = (key: string, next: unknown) => {
      const { [key]: _, ...rest } = members;
      const all = next === undefined ? rest : { ...rest, [key]: next };
      set(required || Object.keys(all).length > 0 ? all : undefined);
    };
    const fields = Object.entries(schema.properties ?? {}).map(([key, part]) => (
      <Input key={key} schema={part} name={key} path={`${path}/${key}`} required={!!schema.required?.includes(key)} value={members[key]} set={(next) => change(key, next)} />
    ));
    return name ? <fieldset><legend>{schema.title ?? name}</legend>{fields}</fieldset> : <>{fields}</>;
  }
  return (
    <div className="field">
      <label htmlFor={id}>
        {schema.title ?? (name || "Payload")}
        {required && <span aria-hidden="true"> *</span>}
      </label>
      <Control {...field} id={id} marks={marks} />
      {schema.description && <p className="quiet">{schema.description}</p>}
      {shown}
    </div>
  );
}

type ControlProps = Field & { id: string; marks: object };

function Control(props: ControlProps) {
  const { schema, value, set, required, id, path, marks } = props;
  const { setFault } = useContext(FaultsContext);
  const choose = (next: unknown) => {
    setFault(path);
    set(next);
  };
  if (schema.enum) return <Choice {...props} choices={schema.enum} set={choose} />;
  if (schema.type === "boolean") {
    if (!required && schema.default === undefined) return <Choice {...props} choices={[true, false]} set={choose} />;
    return <input id={id} type="checkbox" checked={value === true} onChange={(event) => choose(event.target.checked)} {...marks} />;
  }
  return <TextControl {...props} />;
}

/** One of some values; what is not required may stay open, and then nothing is sent. */
function Choice({ choices, value, set, required, id, marks }: ControlProps & { choices: unknown[] }) {
  return (
    <select id={id} value={choices.indexOf(value)} onChange={(event) => set(choices[Number(event.target.value)])} {...marks}>
      <option value={-1} disabled={required}>–</option>
      {choices.map((one, index) => <option key={index} value={index}>{String(one)}</option>)}
    </select>
  );
}

function TextControl({ schema, value, set, id, path, marks }: ControlProps) {
  const items = String(schema.items?.type);
  const read = (text: string): Read => {
    if (schema.type === "array") return readList(text, items);
    return schema.type === "string" ? { value: text === "" ? undefined : text } : readNumber(text);
  };
  const word = (one: unknown) => (typeof one === "string" ? one : one === undefined ? "" : toJson(one));
  const [text, change] = useText(path, Array.isArray(value) ? value.map(word).join("\n") : word(value), read, set);
  if (schema.type === "array") {
    return <textarea id={id} rows={3} placeholder="One on each line" value={text} onChange={(event) => change(event.target.value)} {...marks} />;
  }
  return <input id={id} type="text" inputMode={schema.type === "string" ? "text" : "decimal"} value={text} onChange={(event) => change(event.target.value)} {...marks} />;
}
