// What is declared, as JSON that says the same.

/** Times are kept as they are written: they are finer than a Date. */
export type Time = string | Date;

/** For JSON.stringify. JSON has no NaN and no invalid Date; what would be null instead was not declared. */
export function faithful(this: unknown, name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`"${name}" is no number that JSON has`);
  }
  const given = (this as Record<string, unknown>)[name]; // before its toJSON
  if (given instanceof Date && Number.isNaN(given.getTime())) {
    throw new TypeError(`"${name}" is no valid Date`);
  }
  return value;
}

export function rfc3339(when: Time): string {
  if (typeof when === "string") return when;
  if (Number.isNaN(when.getTime())) throw new TypeError("that is no valid Date");
  return when.toISOString();
}
