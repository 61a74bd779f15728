// The steps of a run as a graph, in layers. What belongs to one map is one node, so that ten thousand items stay readable.
import dagre from "@dagrejs/dagre";
import { Background, ControlButton, Controls, type Edge, Handle, MiniMap, type Node, type NodeProps, Position, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Step } from "../api/client";
import { State } from "./basics";
import { brief } from "./text";

const WIDTH = 190;
const HEIGHT = 52;
/** Maps with more items than this are one node. */
const FOLD_FROM = 12;
const NODES_MAX = 3000;
const LARGE = 150;
/** Below this the names of steps cannot be read, */
const READABLE = 0.6;
/** and below this steps are dots. */
const FAR = 0.3;
/** Then those that failed have a margin that is so wide on the screen. */
const HALO = 5;
const SMALLEST_BOX = 300;

type Group = { key: string; name: string; steps: Step[]; state: string };
type Data = { group: Group; chosen: boolean };

const WORST = ["failed", "running", "claimed", "pending", "scheduled", "blocked", "cancelled", "skipped", "completed"];
const mapOf = (name: string) => /^(.*)\[\d+\]/.exec(name)?.[1];

function groups(steps: Step[]): Group[] {
  const sizes = new Map<string, number>();
  for (const step of steps) {
    const map = mapOf(step.name);
    if (map) sizes.set(map, (sizes.get(map) ?? 0) + 1);
  }
  const found = new Map<string, Group>();
  for (const step of steps) {
    const map = mapOf(step.name);
    const folded = map !== undefined && (sizes.get(map) ?? 0) > FOLD_FROM;
    const key = folded ? `${map}[…]` : step.job;
    const group = found.get(key);
    if (group) group.steps.push(step);
    else found.set(key, { key, name: folded ? `${map}[…]` : step.name, steps: [step], state: step.state });
  }
  for (const group of found.values()) {
    group.state = WORST.find((state) => group.steps.some((step) => step.state === state)) ?? group.state;
  }
  return [...found.values()].slice(0, NODES_MAX);
}

/** The step that an item of a map or a step of a sub-workflow belongs to. */
const ownerOf = (name: string) => /^(.*?)(\[\d+\]|\/[^/]*)$/.exec(name)?.[1];

function edgesOf(all: Group[]): Edge[] {
  const steps = all.flatMap((group) => group.steps.map((step) => ({ step, key: group.key })));
  const of = new Map(steps.map(({ step, key }) => [step.job, key]));
  const named = new Map(steps.map(({ step, key }) => [step.name, { step, key }]));
  const edges = new Map<string, Edge>();
  const add = (source: string | undefined, target: string) => {
    const id = `${source}→${target}`;
    if (source && source !== target) edges.set(id, { id, source, target });
  };
  for (const { step, key } of steps) {
    const owner = named.get(ownerOf(step.name) ?? "");
    // What belongs to a step begins after what the step waits for, and the step ends after it.
    if (owner) add(key, owner.key);
    const after = step.after?.length || !owner ? step.after : owner.step.after;
    for (const before of after ?? []) add(of.get(before), key);
  }
  return [...edges.values()];
}

/** Past this the careful layout takes seconds, in which the page would stand still. */
const CAREFUL_MAX = 1200;

/** Each node behind the last of those it waits for, near those it comes from. */
function quickPlaces(all: Group[], edges: Edge[]): Map<string, { x: number; y: number }> {
  const before = new Map<string, string[]>(all.map(({ key }) => [key, []]));
  for (const edge of edges) before.get(edge.target)?.push(edge.source);
  const ranks = new Map<string, number>();
  const begun = new Set<string>();
  const rank = (first: string): number => {
    // Without recursion: a chain may be thousands long.
    const left = [first];
    while (left.length > 0) {
      const key = left.at(-1)!;
      begun.add(key);
      const open = (before.get(key) ?? []).filter((one) => !begun.has(one));
      left.push(...open);
      if (open.length > 0) continue;
      left.pop();
      ranks.set(key, 1 + (before.get(key) ?? []).reduce((last, one) => Math.max(last, ranks.get(one) ?? -1), -1));
    }
    return ranks.get(first)!;
  };
  const columns: string[][] = [];
  for (const { key } of all) (columns[rank(key)] ??= []).push(key);
  const rows = new Map<string, number>();
  const found = new Map<string, { x: number; y: number }>();
  columns.forEach((keys, column) => {
    const middle = (key: string) => {
      const from = (before.get(key) ?? []).map((one) => rows.get(one) ?? 0);
      return from.length ? from.reduce((sum, row) => sum + row, 0) / from.length : 0;
    };
    const sorted = column === 0 ? keys : keys.map((key) => [middle(key), key] as const).sort(([a], [b]) => a - b).map(([, key]) => key);
    sorted.forEach((key, row) => {
      rows.set(key, row);
      found.set(key, { x: column * (WIDTH + 50), y: row * (HEIGHT + 18) });
    });
  });
  return found;
}

function places(all: Group[], edges: Edge[]): Map<string, { x: number; y: number }> {
  if (all.length + edges.length > CAREFUL_MAX) return quickPlaces(all, edges);
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 18, ranksep: 50 }).setDefaultEdgeLabel(() => ({}));
  all.forEach((group) => graph.setNode(group.key, { width: WIDTH, height: HEIGHT }));
  edges.forEach((edge) => graph.setEdge(edge.source, edge.target));
  dagre.layout(graph);
  return new Map(all.map(({ key }) => [key, { x: graph.node(key).x - WIDTH / 2, y: graph.node(key).y - HEIGHT / 2 }]));
}

function StepNode({ data }: NodeProps<Node<Data>>) {
  const { group, chosen } = data;
  const many = group.steps.length > 1;
  const count = (state: string) => group.steps.filter((step) => step.state === state).length;
  const undo = group.name.startsWith("~undo/");
  return (
    <div className={`step ${group.state}${chosen ? " chosen" : ""}${undo ? " undo" : ""}`} title={group.name}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <div className="step-name">{brief(undo ? `undo ${group.name.slice(6)}` : group.name, 40)}</div>
      {many ? (
        <div className="quiet">
          {count("completed")}/{group.steps.length} done{count("failed") > 0 && `, ${count("failed")} failed`}
        </div>
      ) : (
        <State of={group.state} />
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const nodeTypes = { step: StepNode };
type Props = { steps: Step[]; chosen?: string; choose: (job: string) => void };

export default function Graph({ steps, chosen, choose }: Props) {
  const all = useMemo(() => groups(steps), [steps]);
  // Laid out again only when steps or their order changed, not with every state.
  const shape = all.map((group) => group.key).join() + steps.length;
  const edges = useMemo(() => edgesOf(all), [shape]);
  const at = useMemo(() => places(all, edges), [shape]);
  const nodes: Node<Data>[] = all.map((group) => ({
    id: group.key,
    type: "step",
    position: at.get(group.key) ?? { x: 0, y: 0 },
    data: { group, chosen: group.steps.some((step) => step.job === chosen) },
    width: WIDTH,
    height: HEIGHT,
    ariaLabel: `Step ${group.name}: ${group.state}`,
  }));
  const box = useRef<HTMLDivElement>(null);
  const [flow, setFlow] = useState<ReactFlowInstance<Node<Data>>>();
  const show = (key: string | undefined) => {
    const place = key !== undefined && at.get(key);
    if (!flow || !place || !box.current) return;
    const { x, y, zoom } = flow.getViewport();
    const [left, top] = [place.x * zoom + x, place.y * zoom + y];
    const isSeen = zoom >= READABLE && left >= 0 && top >= 0 && left + WIDTH * zoom <= box.current.clientWidth && top + HEIGHT * zoom <= box.current.clientHeight;
    if (!isSeen) void flow.setCenter(place.x + WIDTH / 2, place.y + HEIGHT / 2, { zoom: Math.max(zoom, READABLE) });
  };
  // All of them can be seen at once.
  const least = useMemo(() => {
    const most = (of: "x" | "y") => Math.max(1, ...[...at.values()].map((place) => place[of]));
    return Math.min(0.05, SMALLEST_BOX / (most("x") + 2 * WIDTH), SMALLEST_BOX / (most("y") + 2 * WIDTH));
  }, [at]);
  const chosenKey = all.find((group) => group.steps.some((step) => step.job === chosen))?.key;
  // What is chosen is in sight, wherever it was chosen.
  useEffect(() => show(chosenKey), [flow, chosenKey, shape]);
  const failed = all.filter((group) => group.state === "failed");
  const shownLast = useRef(-1);
  const showFailed = () => show(failed[++shownLast.current % failed.length].key);
  // Of many steps a part is drawn, and the small map shows where it lies.
  const large = all.length > LARGE;
  const pick = (group: Group) => choose((group.steps.find((step) => step.state === group.state) ?? group.steps[0]).job);
  return (
    <div className="graph" ref={box}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        onNodeClick={(_, node) => pick((node.data as Data).group)}
        onSelectionChange={({ nodes: [node] }) => node && pick((node.data as Data).group)}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        onlyRenderVisibleElements={large}
        fitView={!large}
        fitViewOptions={{ maxZoom: 1 }}
        defaultViewport={{ x: 20, y: 20, zoom: 0.8 }}
        minZoom={least}
        onInit={setFlow}
        onMove={(_, { zoom }) => {
          box.current?.classList.toggle("far", zoom < FAR);
          box.current?.style.setProperty("--halo", `${HALO / zoom}px`);
        }}
        proOptions={{ hideAttribution: false }}
      >
        <Background />
        <Controls showInteractive={false}>
          {failed.length > 0 && (
            <ControlButton onClick={showFailed} title="Show what failed" aria-label="Show what failed">
              ✕
            </ControlButton>
          )}
        </Controls>
        {all.length > 24 && <MiniMap pannable zoomable nodeClassName={(node) => `mini ${(node.data as Data).group.state}`} />}
      </ReactFlow>
    </div>
  );
}
