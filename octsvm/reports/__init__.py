"""Pages of text, tables and pictures: one self-contained HTML file, or Markdown with files."""
