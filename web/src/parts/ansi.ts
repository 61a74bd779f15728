// What programs write to colour their output, as pieces of text with classes. Nothing of it becomes markup.
import { plain } from "./level";
import { clean } from "./text";

export type Piece = { text: string; classes: string; style?: { color?: string; backgroundColor?: string } };
type Rgb = [number, number, number];
/** One of the sixteen named colours, or any other. */
type Colour = { name: string } | { rgb: Rgb } | undefined;
type Pen = { fore: Colour; back: Colour; marks: Set<string> };

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const MARKS: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
/** What ends a mark. Bold and dim end together. */
const ENDS: Record<number, string[]> = { 21: ["bold"], 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };
const CUBE = [0, 95, 135, 175, 215, 255];
/** Darker text than this cannot be read on the log's background, and lighter backgrounds need dark text. */
const DARK = 0.2;
const LIGHT = 0.4;

const named = (index: number): Colour => ({ name: `${index > 7 ? "bright-" : ""}${NAMES[index % 8]}` });

function indexed(index: number): Colour {
  if (!(index >= 0 && index <= 255)) return undefined;
  if (index < 16) return named(index);
  if (index > 231) return { rgb: [0, 0, 0].map(() => 8 + (index - 232) * 10) as Rgb };
  const at = index - 16;
  return { rgb: [CUBE[Math.floor(at / 36)], CUBE[Math.floor(at / 6) % 6], CUBE[at % 6]] };
}

/** `5;n` or `2;r;g;b` behind 38 or 48. */
function further(codes: number[]): Colour {
  const kind = codes.shift();
  if (kind === 5) return indexed(codes.shift() ?? -1);
  if (kind !== 2) return undefined;
  const rgb = codes.splice(0, 3);
  return rgb.length === 3 && rgb.every((part) => part >= 0 && part <= 255) ? { rgb: rgb as Rgb } : undefined;
}

function apply(pen: Pen, codes: number[]) {
  while (codes.length > 0) {
    const code = codes.shift()!;
    if (code === 0) Object.assign(pen, { fore: undefined, back: undefined, marks: new Set() });
    else if (MARKS[code]) pen.marks.add(MARKS[code]);
    else if (ENDS[code]) ENDS[code].forEach((mark) => pen.marks.delete(mark));
    else if (code >= 30 && code <= 37) pen.fore = named(code - 30);
    else if (code >= 90 && code <= 97) pen.fore = named(code - 82);
    else if (code >= 40 && code <= 47) pen.back = named(code - 40);
    else if (code >= 100 && code <= 107) pen.back = named(code - 92);
    else if (code === 38) pen.fore = further(codes);
    else if (code === 48) pen.back = further(codes);
    else if (code === 39) pen.fore = undefined;
    else if (code === 49) pen.back = undefined;
  }
}

const light = ([r, g, b]: Rgb) => (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
const css = (rgb: Rgb) => `rgb(${rgb.join(" ")})`;
/** On the log's dark background a dark colour is mixed with white. */
const readable = (rgb: Rgb) => (light(rgb) >= DARK ? rgb : (rgb.map((part) => Math.round(part + (255 - part) * 0.55)) as Rgb));

function dressed(text: string, pen: Pen): Piece {
  const [fore, back] = pen.marks.has("inverse") ? [pen.back, pen.fore] : [pen.fore, pen.back];
  const classes = [...pen.marks].map((mark) => `ansi-${mark}`);
  const style: Piece["style"] = {};
  if (fore && "name" in fore) classes.push(`ansi-${fore.name}-fg`);
  if (back && "name" in back) classes.push(`ansi-${back.name}-bg`);
  if (back && "rgb" in back) {
    style.backgroundColor = css(back.rgb);
    if (!fore) style.color = light(back.rgb) > LIGHT ? "#000" : "#fff";
  }
  if (fore && "rgb" in fore) style.color = css(back ? fore.rgb : readable(fore.rgb));
  return { text: clean(plain(text)), classes: classes.join(" "), style: Object.keys(style).length ? style : undefined };
}

/** A line in pieces that look alike. */
export function pieces(line: string): Piece[] {
  if (!line.includes("\u001b")) return [{ text: clean(line), classes: "" }];
  const pen: Pen = { fore: undefined, back: undefined, marks: new Set() };
  const found: Piece[] = [];
  let from = 0;
  for (const match of line.matchAll(/\u001b\[([\d;:]*)m/g)) {
    if (match.index > from) found.push(dressed(line.slice(from, match.index), pen));
    apply(pen, match[1].split(/[;:]/).map(Number));
    from = match.index + match[0].length;
  }
  if (from < line.length) found.push(dressed(line.slice(from), pen));
  return found;
}

/** What is left of a line in which the cursor went back to its beginning. */
export function afterReturns(text: string): string {
  const shown = text.replace(/\r+$/, "");
  return shown.slice(shown.lastIndexOf("\r") + 1);
}
