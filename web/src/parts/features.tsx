// An item's feature graph: what is dirty, and with a chosen node everything that depends on it.
import dagre from "@dagrejs/dagre";
import { Background, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";
import type { FeatureGraph } from "../api/client";
import { brief } from "./text";

const WIDTH = 170;
const HEIGHT = 44;
const NODES_MAX = 2000;
/** As steps are coloured. */
const COLOURS: Record<string, string> = { clean: "completed", dirty: "pending", validating: "running", failed: "failed" };

type Data = { name: string; kind: string; state: string; inCone: boolean };

function Feature({ data }: NodeProps<Node<Data>>) {
  return (
    <div className={`step ${COLOURS[data.state] ?? ""}${data.inCone ? " chosen" : ""}`} title={data.name}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <div className="step-name">{brief(data.name, 40)}</div>
      <div className="quiet">{data.state} {brief(data.kind, 20)}</div>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const nodeTypes = { feature: Feature };

export default function Features({ graph, cone, choose }: { graph: FeatureGraph; cone: Set<string>; choose: (key: string) => void }) {
  const shown = graph.nodes.slice(0, NODES_MAX);
  const edges: Edge[] = useMemo(() => {
    const known = new Set(shown.map((node) => node.key));
    const dirty = new Set(shown.filter((node) => node.state === "dirty").map((node) => node.key));
    return graph.edges
      .filter((edge) => known.has(edge.source) && known.has(edge.target))
      .map((edge) => ({
        id: `${edge.source}→${edge.target}`,
        source: edge.source,
        target: edge.target,
        className: dirty.has(edge.source) && dirty.has(edge.target) ? "dirty" : "",
      }));
  }, [graph]);
  const at = useMemo(() => {
    const layers = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 14, ranksep: 40 }).setDefaultEdgeLabel(() => ({}));
    shown.forEach((node) => layers.setNode(node.key, { width: WIDTH, height: HEIGHT }));
    edges.forEach((edge) => layers.setEdge(edge.source, edge.target));
    dagre.layout(layers);
    return new Map(shown.map(({ key }) => [key, { x: layers.node(key).x, y: layers.node(key).y }]));
  }, [edges]);
  const nodes: Node<Data>[] = shown.map((node) => ({
    id: node.key,
    type: "feature",
    position: at.get(node.key) ?? { x: 0, y: 0 },
    data: { name: node.key, kind: node.kind, state: node.state, inCone: cone.has(node.key) },
    width: WIDTH,
    height: HEIGHT,
    ariaLabel: `${node.key}: ${node.state}`,
  }));
  return (
    <div className="graph">
      <ReactFlow nodes={nodes} edges={edges} nodeTypes={nodeTypes} onNodeClick={(_, node) => choose(node.id)} nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} onlyRenderVisibleElements={shown.length > 100} fitView fitViewOptions={{ maxZoom: 1 }} minZoom={0.05}>
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
