// One stream of changes for all open pages: browsers allow only a few connections to one server.
import { Hub } from "./hub";

const scope = self as unknown as { onconnect: (event: MessageEvent) => void };
const hub = new Hub();

scope.onconnect = (event) => {
  const port = event.ports[0];
  const send = (message: unknown) => port.postMessage(message);
  port.onmessage = ({ data }) => {
    if (data.join) hub.join(data.join, send);
    else hub.leave(send);
  };
};
