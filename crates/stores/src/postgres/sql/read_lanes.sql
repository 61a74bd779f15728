-- lanes_tx. Everything that was added by a transaction the last reader could not see in full.
SELECT l.namespace, l.lane, l.tags FROM windlass.lanes l WHERE l.tx >= $1
