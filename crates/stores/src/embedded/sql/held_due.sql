-- Held jobs with the time their lease runs out (jobs_held). Reads all of them, once, when the store is opened.
SELECT due, namespace, id FROM jobs INDEXED BY jobs_held WHERE worker IS NOT NULL AND due IS NOT NULL
