"""The rules that every module keeps."""
