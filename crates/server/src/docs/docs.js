// Shows the API's description. Everything is put in as text, so that nothing in it can become markup.
"use strict";

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties || {});
  made.append(...children.filter((child) => child !== null));
  return made;
}

function nameOf(reference) {
  return reference.split("/").pop();
}

// A schema in a few words: what a reader wants to know before the details.
function words(schema) {
  if (!schema) return "";
  if (schema === true) return "any";
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.anyOf || schema.oneOf) return (schema.anyOf || schema.oneOf).map(words).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  const types = Array.isArray(schema.type) ? schema.type : [schema.type || "any"];
  return types.map((type) => (type === "array" ? words(schema.items) + "[]" : type)).join(" | ");
}

function fields(schema) {
  const rows = Object.entries(schema.properties || {}).map(([name, field]) => {
    const needed = (schema.required || []).includes(name) ? " (needed)" : "";
    return element("tr", {}, element("td", {}, element("code", {}, name)), element("td", {}, words(field) + needed),
      element("td", {}, field.description || ""));
  });
  return rows.length ? element("table", {}, ...rows) : element("pre", {}, JSON.stringify(schema, null, 2));
}

// A schema with all that it names, each once.
function shape(schema, all, seen) {
  const box = element("div", {});
  if (!schema) return box;
  const target = schema.$ref ? all[nameOf(schema.$ref)] : schema;
  if (schema.$ref) {
    if (seen.has(schema.$ref)) return box;
    seen.add(schema.$ref);
    box.append(element("h4", {}, nameOf(schema.$ref)));
    if (target.description) box.append(element("p", {}, target.description));
  }
  box.append(fields(target));
  const found = JSON.stringify(target).match(/#\/components\/schemas\/[^"]+/g) || [];
  found.filter((reference) => !seen.has(reference)).forEach((reference) => box.append(shape({ $ref: reference }, all, seen)));
  return box;
}

function parameterTable(parameters) {
  const rows = parameters.map((one) => element("tr", {}, element("td", {}, element("code", {}, one.name)),
    element("td", {}, one.in + (one.required ? ", needed" : "")), element("td", {}, words(one.schema)),
    element("td", {}, one.description || "")));
  return rows.length ? element("table", {}, ...rows) : null;
}

function contentOf(holder) {
  const entries = Object.entries((holder && holder.content) || {});
  return entries.length ? entries[0] : [null, null];
}

function details(operation, all) {
  const box = element("div", {});
  const table = parameterTable(operation.parameters || []);
  if (table) box.append(element("h4", {}, "Parameters"), table);
  const seen = new Set();
  if (operation.requestBody) {
    const [type, content] = contentOf(operation.requestBody);
    box.append(element("h4", {}, "Body: " + type), shape(content.schema, all, seen));
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    const [type, content] = contentOf(response);
    box.append(element("h4", {}, "Answer " + status + (type ? ": " + type : "")), element("p", {}, response.description));
    if (content && content.schema && type === "application/json") box.append(shape(content.schema, all, seen));
  }
  return box;
}

function row(method, path, operation, all) {
  const title = element("summary", {}, element("span", { className: "role" }, operation["x-access"]),
    element("span", { className: "method" }, method.toUpperCase()), element("code", {}, path), " " + operation.summary);
  const box = element("details", { id: operation.operationId }, title);
  box.dataset.words = (method + " " + path + " " + operation.summary).toLowerCase();
  // Made when somebody looks: the whole of it at once is a lot of page.
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1) box.append(details(operation, all));
  });
  return box;
}

function show(description) {
  document.getElementById("about").textContent = description.info.description + " Version " + description.info.version + ".";
  const groups = new Map();
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const group = operation.tags[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(row(method, path, operation, description.components.schemas));
    }
  }
  const [index, main] = [document.getElementById("index"), document.getElementById("operations")];
  for (const [group, rows] of groups) {
    index.append(element("a", { href: "#" + group }, group));
    main.append(element("section", {}, element("h2", { id: group }, group), ...rows));
  }
}

function filter(event) {
  const wanted = event.target.value.toLowerCase();
  for (const box of document.querySelectorAll("details")) box.hidden = !box.dataset.words.includes(wanted);
}

document.getElementById("filter").addEventListener("input", filter);
fetch("api/v1/openapi.json").then((response) => response.json()).then(show).catch((error) => {
  document.getElementById("about").textContent = "The description could not be loaded: " + error;
});
