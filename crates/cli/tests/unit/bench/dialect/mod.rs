mod workflow_graph;
