// The object that the keys `d` and `y` are about: the selection of a page, or what the page shows.

export interface Subject {
  name: string
  /** Show what is known about it. */
  describe: () => void
  /** Show it as YAML: its own text, or a value to be written as YAML. */
  yaml: (() => void) | { value: unknown }
}

class Subjects {
  current = $state.raw<Subject | null>(null)

  /** Make an object the subject for as long as an effect lives; the return value ends it. */
  set(subject: Subject | null): () => void {
    this.current = subject
    return () => {
      if (this.current === subject) this.current = null
    }
  }
}

export const subjects = new Subjects()
