-- No table changes. Rows say more since this version, and a program before it would act against what they say: it would take revoked and
-- replaced admin tokens for valid ones, forget that a cancelled job still has its place under a concurrency key, show chunks of logs as
-- text, and go by the database's clock after that was set. So such a program must not use them (`min_reader`).
COMMENT ON TABLE windlass.meta IS 'Numbers about the whole: the version of the schema, the oldest program that may use it, the clock.';
