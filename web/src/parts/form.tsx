// A form from a JSON Schema, for the schemas people write for payloads. What it cannot draw is edited as JSON.
import { useEffect, useId, useState } from "react";

export type Schema = {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  [other: string]: unknown;
};

const DEPTH_MAX = 4;
const FIELDS_MAX = 60;
/** With any of these a schema says more than fields can. */
const BEYOND = ["$ref", "oneOf", "anyOf", "allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas"];
const SCALARS = ["string", "number", "integer", "boolean"];

export function drawable(schema: Schema | undefined, depth = 0): boolean {
  if (!schema || typeof schema !== "object" || depth > DEPTH_MAX || BEYOND.some((word) => word in schema)) return false;
  if (Array.isArray(schema.enum)) return schema.enum.every((one) => typeof one !== "object");
  if (schema.type === "object") {
    const fields = Object.values(schema.properties ?? {});
    return fields.length > 0 && fields.length <= FIELDS_MAX && fields.every((field) => drawable(field, depth + 1));
  }
  if (schema.type === "array") return !!schema.items && SCALARS.includes(String(schema.items.type)) && drawable(schema.items, depth + 1);
  return typeof schema.type === "string" && SCALARS.includes(schema.type);
}

type Field = { schema: Schema; value: unknown; set: (value: unknown) => void; name: string; required: boolean };

export function SchemaForm({ schema, value, set }: { schema?: Schema; value: unknown; set: (value: unknown) => void }) {
  const can = drawable(schema);
  const [raw, setRaw] = useState(!can);
  return (
    <div className="form">
      {can && (
        <button className="small" onClick={() => setRaw(!raw)}>
          {raw ? "Edit as a form" : "Edit as JSON"}
        </button>
      )}
      {!can && schema && <p className="note">This schema says more than a form can show, so the payload is edited as JSON.</p>}
      {raw ? <RawJson value={value} set={set} /> : <Input schema={schema!} value={value} set={set} name="" required />}
    </div>
  );
}

function RawJson({ value, set }: { value: unknown; set: (value: unknown) => void }) {
  const id = useId();
  const [text, setText] = useState(() => JSON.stringify(value ?? {}, null, 2));
  const [fault, setFault] = useState("");
  // What is shown is what is sent, also before it is changed.
  useEffect(() => {
    if (value === undefined) set({});
  }, []);
  const change = (next: string) => {
    setText(next);
    try {
      set(next.trim() ? JSON.parse(next) : undefined);
      setFault("");
    } catch (error) {
      setFault(`This is not JSON: ${(error as Error).message}`);
    }
  };
  return (
    <>
      <label htmlFor={id}>Payload as JSON</label>
      <textarea id={id} rows={10} spellCheck={false} value={text} onChange={(event) => change(event.target.value)} />
      <p role="alert" className="bad-text">{fault}</p>
    </>
  );
}

function Input(field: Field) {
  const { schema, value, set, name, required } = field;
  const id = useId();
  if (schema.type === "object") {
    const members = (value ?? {}) as Record<string, unknown>;
    const change = (key: string, next: unknown) => {
      const { [key]: _, ...rest } = members;
      set(next === undefined ? rest : { ...rest, [key]: next });
    };
    const fields = Object.entries(schema.properties ?? {}).map(([key, part]) => (
      <Input key={key} schema={part} name={key} required={!!schema.required?.includes(key)} value={members[key]} set={(next) => change(key, next)} />
    ));
    return name ? <fieldset><legend>{schema.title ?? name}</legend>{fields}</fieldset> : <>{fields}</>;
  }
  return (
    <div className="field">
      <label htmlFor={id}>
        {schema.title ?? (name || "Payload")}
        {required && <span aria-hidden="true"> *</span>}
      </label>
      <Control {...field} id={id} />
      {schema.description && <p className="quiet">{schema.description}</p>}
    </div>
  );
}

function Control({ schema, value, set, required, id }: Field & { id: string }) {
  const shown = value ?? schema.default;
  if (schema.enum) {
    const at = schema.enum.indexOf(shown as never);
    return (
      <select id={id} required={required} value={at} onChange={(event) => set(schema.enum![Number(event.target.value)])}>
        <option value={-1} disabled={required}>–</option>
        {schema.enum.map((one, index) => <option key={index} value={index}>{String(one)}</option>)}
      </select>
    );
  }
  if (schema.type === "boolean") {
    return <input id={id} type="checkbox" checked={shown === true} onChange={(event) => set(event.target.checked)} />;
  }
  if (schema.type === "number" || schema.type === "integer") {
    const step = schema.type === "integer" ? 1 : "any";
    const change = (text: string) => set(text === "" ? undefined : Number(text));
    return <input id={id} type="number" step={step} min={schema.minimum} max={schema.maximum} required={required} value={shown === undefined ? "" : String(shown)} onChange={(event) => change(event.target.value)} />;
  }
  if (schema.type === "array") {
    const numbers = schema.items?.type !== "string";
    const change = (text: string) => {
      const parts = text.split("\n").filter((part) => part !== "");
      set(numbers ? parts.map((part) => (schema.items?.type === "boolean" ? part === "true" : Number(part))) : parts);
    };
    return <textarea id={id} rows={3} placeholder="One on each line" value={Array.isArray(shown) ? shown.join("\n") : ""} onChange={(event) => change(event.target.value)} />;
  }
  const change = (text: string) => set(text === "" && !required ? undefined : text);
  return <input id={id} type="text" required={required} minLength={schema.minLength} maxLength={schema.maxLength} value={shown === undefined ? "" : String(shown)} onChange={(event) => change(event.target.value)} />;
}
