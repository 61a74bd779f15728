// A payload as a form shows it, by its schema. The rule: what is displayed is sent, and nothing else is.
import { fromJson, RawNumber } from "../api/client";

export type Schema = {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
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
  if (schema.type === "array") return !!schema.items && !schema.items.enum && SCALARS.includes(String(schema.items.type)) && drawable(schema.items, depth + 1);
  return typeof schema.type === "string" && SCALARS.includes(schema.type);
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof RawNumber);
const isNumber = (value: unknown) => typeof value === "number" || value instanceof RawNumber;

/** Whether the fields of a form show all of a value. */
export function fits(schema: Schema, value: unknown): boolean {
  if (value === undefined) return true;
  if (schema.enum) return schema.enum.includes(value);
  switch (schema.type) {
    case "object":
      return isMap(value) && Object.entries(value).every(([key, part]) => {
        const field = Object.hasOwn(schema.properties ?? {}, key) ? schema.properties![key] : undefined;
        return field !== undefined && part !== undefined && fits(field, part);
      });
    case "array":
      return Array.isArray(value) && value.every((one) => fits(schema.items!, one) && !(typeof one === "string" && /[\n\r]/.test(one))) && value.at(-1) !== "";
    case "string":
      return typeof value === "string" && !/[\n\r]/.test(value);
    case "boolean":
      return typeof value === "boolean";
    default:
      return isNumber(value);
  }
}

/** What a form displays before anyone types: the defaults of its fields. */
export function initial(schema: Schema, required = true): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema.type === "object") {
    const found: Record<string, unknown> = {};
    for (const [key, part] of Object.entries(schema.properties ?? {})) {
      const value = initial(part, !!schema.required?.includes(key));
      if (value !== undefined) found[key] = value;
    }
    return required || Object.keys(found).length > 0 ? found : undefined;
  }
  // A box that is not ticked displays no.
  return schema.type === "boolean" && required ? false : undefined;
}

/** Fields that must have a value and have none, by their place in the payload. */
export function missing(schema: Schema, value: unknown, required: boolean, path: string, found: Record<string, string>) {
  if (schema.type === "object") {
    if (value === undefined && !required) return;
    const members = isMap(value) ? value : {};
    for (const [key, part] of Object.entries(schema.properties ?? {})) {
      missing(part, Object.hasOwn(members, key) ? members[key] : undefined, !!schema.required?.includes(key), `${path}/${key}`, found);
    }
  } else if (required && value === undefined) {
    found[path] = schema.type === "string" ? "This is required. To send an empty text, edit the payload as JSON." : "This is required.";
  }
}

/** A typed text as the value it displays, or what is wrong with it. */
export type Read = { value?: unknown; fault?: string };

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

export function readNumber(text: string): Read {
  const word = text.trim();
  if (word === "") return {};
  if (!NUMBER.test(word)) return { fault: `"${word.slice(0, 40)}" is not a number. Write it like 12, -3.5 or 1e6.` };
  return { value: fromJson(word) };
}

export function readList(text: string, type: string): Read {
  const lines = text.replace(/\n+$/, "").split("\n");
  if (lines.length === 1 && lines[0] === "") return {};
  if (type === "string") return { value: lines };
  const value: unknown[] = [];
  for (const [index, line] of lines.entries()) {
    if (type === "boolean") {
      if (!/^\s*(true|false)\s*$/.test(line)) return { fault: `Line ${index + 1} is "${line.slice(0, 40)}". Write true or false.` };
      value.push(line.trim() === "true");
    } else {
      const one = readNumber(line);
      if (one.value === undefined) return { fault: `Line ${index + 1}: ${one.fault ?? "it is empty. Write one number on each line."}` };
      value.push(one.value);
    }
  }
  return { value };
}

export function readJson(text: string): Read {
  if (text.trim() === "") return { fault: "There is nothing here. An empty payload is written {}." };
  try {
    return { value: fromJson(text) };
  } catch (error) {
    return { fault: `This is not JSON: ${(error as Error).message}` };
  }
}
